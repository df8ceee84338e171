//! `{name}` becomes a value. Other braces are kept, since configurations have many.

use std::collections::BTreeMap;

/// Values by name.
pub(crate) type Values = BTreeMap<String, String>;

/// The deepest nesting of names in values; a longer chain is a cycle.
const DEPTH_MAX: usize = 8;

/// Why a template could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// No value has this name.
    Unknown { name: String, offset: usize },
    /// The value's names lead back to it.
    Circle { name: String, offset: usize },
}

impl TemplateError {
    /// Where in the template, in bytes.
    pub(crate) fn offset(&self) -> usize {
        match self {
            TemplateError::Unknown { offset, .. } | TemplateError::Circle { offset, .. } => *offset,
        }
    }
}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TemplateError::Unknown { name, .. } => write!(formatter, "no value for {{{name}}}"),
            TemplateError::Circle { name, .. } => write!(formatter, "{{{name}}} names itself"),
        }
    }
}

/// Fills in.
///
/// # Errors
/// A name that has no value, or a circle.
pub(crate) fn fill(template: &str, values: &Values) -> Result<String, TemplateError> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = 0;
    for (start, name) in names(template) {
        let Some(value) = values.get(name) else {
            return Err(TemplateError::Unknown {
                name: name.to_owned(),
                offset: start,
            });
        };
        filled.push_str(&template[rest..start]);
        filled.push_str(value);
        rest = start + name.len() + 2;
    }
    filled.push_str(&template[rest..]);
    Ok(filled)
}

/// Fills values into each other until none names another.
///
/// # Errors
/// A name that has no value, or a circle.
pub(crate) fn resolve(values: &Values) -> Result<Values, TemplateError> {
    let mut resolved = values.clone();
    for _ in 0..DEPTH_MAX {
        let open: Vec<String> = resolved
            .iter()
            .filter(|(_, value)| names(value).next().is_some())
            .map(|(name, _)| name.clone())
            .collect();
        if open.is_empty() {
            return Ok(resolved);
        }
        for name in open {
            let value = fill(&resolved[&name], &resolved)?;
            resolved.insert(name, value);
        }
    }
    let circle = resolved
        .iter()
        .find(|(_, value)| names(value).next().is_some());
    match circle {
        Some((name, _)) => Err(TemplateError::Circle {
            name: name.clone(),
            offset: 0,
        }),
        None => Ok(resolved),
    }
}

/// The names in a template: where their brace is, and the name.
pub(crate) fn names(template: &str) -> impl Iterator<Item = (usize, &str)> {
    template.match_indices('{').filter_map(|(start, _)| {
        let rest = &template[start + 1..];
        let name = &rest[..rest.find('}')?];
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
        let named = name.starts_with(|first: char| first.is_ascii_lowercase());
        (named && name.bytes().all(letters)).then_some((start, name))
    })
}

#[cfg(test)]
mod tests;
