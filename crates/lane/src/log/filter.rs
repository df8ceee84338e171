//! Filters of an `error_log`: conditions on a line beside its level, as in Angie.
//!
//! A filter looks at the text of a line in nginx's form, also where the line is written as JSON. A
//! regular expression whose match ends without a result lets the line pass: a line too many is
//! better than one that is missing.

use std::fmt;
use std::sync::Arc;

use crate::sys::pcre::{Code, Counting, Limits};

use super::error::SpecError;
use super::line::Line;
use super::subject::{Member, Subject};

/// Angie's name for the request line, which is a member of its object `request`.
const REQUEST_LINE: &str = "request_line";

/// The steps of one match: a millisecond at 20 ns a step. A usual pattern needs a few hundred for
/// a line of the greatest length.
const STEPS_MAX: u64 = 50_000;

/// The memory of one match, in KiB; each thread keeps it for the next.
const HEAP_KIB_MAX: u32 = 1024;

/// A condition for the lines of one target.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The filter as written, by which two are compared.
    text: Box<str>,
    part: Part,
    pattern: Pattern,
}

/// The part of a line that a filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Everything after the process, the thread and the connection.
    Line,
    /// The message, without the text about the subject.
    Message,
    Member(Member),
}

#[derive(Clone, Debug)]
enum Pattern {
    Exact(Box<[u8]>),
    Within(Box<[u8]>),
    Regex(Arc<Code>),
}

impl Filter {
    /// Reads the value of a parameter `filter=`: `PART:TEXT`, `PART:=TEXT` or `PART:~REGEX`.
    ///
    /// # Errors
    /// Angie's message.
    pub(super) fn parse(value: &str) -> Result<Filter, SpecError> {
        let (part, pattern) = value
            .split_once(':')
            .ok_or_else(|| SpecError::NoFilterPart(value.to_owned()))?;
        let part = match part {
            "logline" => Part::Line,
            "message" => Part::Message,
            "sourcefile" => return Err(SpecError::FilterOfSources),
            "tag" => return Err(SpecError::FilterOfTags(value.to_owned())),
            REQUEST_LINE => Part::Member(Member::Request),
            name => {
                let known = Member::ALL.into_iter().find(|member| member.name() == name);
                let unknown = || SpecError::UnknownProperty(name.to_owned());
                Part::Member(known.ok_or_else(unknown)?)
            }
        };
        let (is_exact, is_regex) = (pattern.starts_with('='), pattern.starts_with('~'));
        let text = if is_exact || is_regex {
            &pattern[1..]
        } else {
            pattern
        };
        if text.is_empty() {
            return Err(SpecError::EmptyFilter(value.to_owned()));
        }
        let bytes = || Box::from(text.as_bytes());
        let pattern = if is_regex {
            Pattern::Regex(Arc::new(compile(text)?))
        } else if is_exact {
            Pattern::Exact(bytes())
        } else {
            Pattern::Within(bytes())
        };
        Ok(Filter {
            text: value.into(),
            part,
            pattern,
        })
    }

    /// Whether the filter lets a line about this subject pass.
    pub(super) fn passes(&self, line: &Line, subject: Option<&dyn Subject>) -> bool {
        match self.part {
            Part::Line => self.pattern.matches(line.described()),
            Part::Message => self.pattern.matches(line.bare_message()),
            Part::Member(wanted) => subject.is_some_and(|subject| {
                let mut passes = false;
                subject.members(&mut |member, value| {
                    passes |= member == wanted && self.pattern.matches_value(value);
                });
                passes
            }),
        }
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl Pattern {
    fn matches_value(&self, value: fmt::Arguments<'_>) -> bool {
        self.matches(value.to_string().as_bytes())
    }

    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Pattern::Exact(whole) => **whole == *text,
            Pattern::Within(part) => text.windows(part.len()).any(|window| *window == **part),
            Pattern::Regex(code) => {
                let mut limits = Limits {
                    backtracks: u32::MAX,
                    steps: STEPS_MAX,
                    steps_per_item: 1,
                    heap_kib: HEAP_KIB_MAX,
                    interpreted: false,
                };
                let result = code.search(text, &mut limits, &mut Vec::new());
                result.unwrap_or(true)
            }
        }
    }
}

fn compile(pattern: &str) -> Result<Code, SpecError> {
    let compiled = Code::compile(pattern.as_bytes(), false, Counting::Steps);
    compiled.map_err(|error| SpecError::Regex {
        pattern: pattern.to_owned(),
        rest: pattern.get(error.offset..).unwrap_or_default().to_owned(),
        reason: error.message,
    })
}
