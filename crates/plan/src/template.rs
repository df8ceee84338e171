//! Text with variables, compiled once.

use std::fmt;

use turnpike_conf::Complaint;
use turnpike_wire::target::{self, Escape};

use crate::variables::{self, Subject, VariableId, VariableTable};

/// Why a text cannot be compiled. The messages are nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// There is no name after a dollar sign.
    NoName,
    /// The brace before this name is not closed.
    Unclosed(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::NoName => out.write_str("invalid variable name"),
            TemplateError::Unclosed(name) => {
                write!(out, "the closing bracket in \"{name}\" variable is missing")
            }
        }
    }
}

impl std::error::Error for TemplateError {}

impl From<TemplateError> for Complaint {
    fn from(error: TemplateError) -> Complaint {
        error.to_string().into()
    }
}

/// A compiled text: what nginx calls a complex value.
#[derive(Debug, Clone)]
pub struct Template {
    /// None: the value is the text.
    parts: Box<[Part]>,
    text: Box<[u8]>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(Box<[u8]>),
    Variable(VariableId),
    Capture(usize),
}

impl Template {
    /// Compiles `text`: `$name`, `${name}` and, for groups of the last match, `$1` to `$9`.
    ///
    /// # Errors
    /// A name is empty or unclosed.
    pub fn compile<S>(
        text: &[u8],
        variables: &mut VariableTable<S>,
    ) -> Result<Self, TemplateError> {
        if memchr::memchr(b'$', text).is_none() {
            return Ok(Self::literal(text));
        }
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(dollar) = memchr::memchr(b'$', rest) {
            literal.extend_from_slice(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            let (part, used) = reference(after, variables)?;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal).into_boxed_slice()));
            }
            parts.push(part);
            rest = &after[used..];
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into_boxed_slice()));
        }
        Ok(Self {
            parts: parts.into(),
            text: text.into(),
        })
    }

    /// A text in which a dollar sign has no meaning.
    pub fn literal(text: &[u8]) -> Self {
        Self {
            parts: Box::default(),
            text: text.into(),
        }
    }

    /// The value, if there is no variable in it.
    pub fn constant(&self) -> Option<&[u8]> {
        self.parts.is_empty().then_some(&*self.text)
    }

    /// The variables in the text.
    pub fn variables(&self) -> impl Iterator<Item = VariableId> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(id) => Some(*id),
            Part::Text(_) | Part::Capture(_) => None,
        })
    }

    /// Whether groups of the last match are in the text.
    pub fn has_groups(&self) -> bool {
        let is_group = |part: &Part| matches!(part, Part::Capture(_));
        self.parts.iter().any(is_group)
    }

    /// The text as written.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Appends the value to `out`; variables without a value add nothing.
    pub fn evaluate<S: Subject>(&self, subject: &S, out: &mut Vec<u8>) {
        self.append(subject, false, out);
    }

    /// As [`Template::evaluate`], with groups escaped as arguments of a query.
    pub fn evaluate_escaping<S: Subject>(&self, subject: &S, out: &mut Vec<u8>) {
        self.append(subject, true, out);
    }

    fn append<S: Subject>(&self, subject: &S, escaping: bool, out: &mut Vec<u8>) {
        if let Some(value) = self.constant() {
            out.extend_from_slice(value);
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Variable(id) => {
                    variables::append(subject, *id, out);
                }
                Part::Capture(number) => {
                    subject.group(*number, &mut |group| {
                        if escaping {
                            target::escape(group, Escape::Args, out);
                        } else {
                            out.extend_from_slice(group);
                        }
                    });
                }
            }
        }
    }

    /// Calls with the value, in a buffer that is used again.
    pub fn with_value<S: Subject, T>(&self, subject: &S, call: impl FnOnce(&[u8]) -> T) -> T {
        match self.constant() {
            Some(value) => call(value),
            None => {
                let write = |text: &mut Vec<u8>| self.evaluate(subject, text);
                variables::with_text(subject, write, |text| call(text))
            }
        }
    }

    /// The value in a new buffer.
    pub fn value<S: Subject>(&self, subject: &S) -> Vec<u8> {
        let mut out = Vec::new();
        self.evaluate(subject, &mut out);
        out
    }
}

/// Reads the text after a dollar sign; returns the part and the number of bytes.
fn reference<S>(
    after: &[u8],
    variables: &mut VariableTable<S>,
) -> Result<(Part, usize), TemplateError> {
    if let Some(digit @ b'1'..=b'9') = after.first() {
        return Ok((Part::Capture(usize::from(digit - b'0')), 1));
    }
    let braced = after.first() == Some(&b'{');
    let name = if braced { &after[1..] } else { after };
    let length = name
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
        .unwrap_or(name.len());
    if braced && name.get(length) != Some(&b'}') {
        let name = String::from_utf8_lossy(&name[..length]);
        return Err(TemplateError::Unclosed(name.into_owned()));
    }
    if length == 0 {
        return Err(TemplateError::NoName);
    }
    let text = String::from_utf8_lossy(&name[..length]);
    let id = variables.reference(&text);
    Ok((Part::Variable(id), length + if braced { 2 } else { 0 }))
}
