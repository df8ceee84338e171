//! Commands of directive families for the operator: the verbs of the control socket.
//!
//! A family lists its verbs as rows, from which help and reference are generated, and registers
//! their implementations when a plan is built. Commands run on separate threads of the serving
//! process: they may block, and must not share locks with lanes that could delay these.

use std::fmt;

pub use serde_json::{Value, json};

/// The members of a request other than its verb.
pub type Arguments = serde_json::Map<String, Value>;

/// One verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRow {
    /// The name: the family's subject, a dot, and the action, as in `upstream.list`.
    pub name: &'static str,
    /// The arguments in the reference: `name=UPSTREAM [peer=ADDRESS]`.
    pub arguments: &'static str,
    /// The effect, in a sentence.
    pub summary: &'static str,
}

/// The implementation of a verb.
pub trait Command: Send + Sync {
    /// Runs the command and returns its result. May block; it runs on no lane.
    ///
    /// # Errors
    /// The reason why it failed. Nothing must have changed then, or the message must name the
    /// changes.
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError>;
}

/// Why a command failed, by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// An argument is missing or invalid.
    Invalid(String),
    /// The object of an argument does not exist.
    NotFound(String),
    /// The command failed.
    Failed(String),
}

impl CommandError {
    /// The error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::NotFound(_) => "not_found",
            Self::Failed(_) => "failed",
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Invalid(message) | Self::NotFound(message) | Self::Failed(message)) = self;
        formatter.write_str(message)
    }
}

impl std::error::Error for CommandError {}

/// The text argument with that name; `None` if it is missing.
///
/// # Errors
/// It is not a text.
pub fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, CommandError> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(CommandError::Invalid(format!("\"{name}\" must be a text"))),
    }
}

/// The text argument with that name, which is required.
///
/// # Errors
/// It is missing or not a text.
pub fn required_text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, CommandError> {
    text(arguments, name)?.ok_or_else(|| CommandError::Invalid(format!("\"{name}\" must be given")))
}

/// The texts of a list argument, which is required; one text is a list of itself.
///
/// # Errors
/// It is missing, or not a list of texts.
pub fn texts<'a>(arguments: &'a Arguments, name: &str) -> Result<Vec<&'a str>, CommandError> {
    let wrong = || CommandError::Invalid(format!("\"{name}\" must be a list of texts"));
    match arguments.get(name) {
        Some(Value::Array(list)) => {
            let list = list.iter().map(|one| one.as_str().ok_or_else(wrong));
            list.collect()
        }
        _ => Ok(vec![required_text(arguments, name)?]),
    }
}

/// The number argument with that name; digits as text are accepted too, for command lines.
///
/// # Errors
/// It is not a whole number of 0 or more.
pub fn number(arguments: &Arguments, name: &str) -> Result<Option<u64>, CommandError> {
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_u64(),
    };
    let wrong = || CommandError::Invalid(format!("\"{name}\" must be a whole number"));
    number.map(Some).ok_or_else(wrong)
}

/// The switch with that name; a word is accepted too (`on`, `off`, `true`, `false`), for command
/// lines. `false` if it is missing.
///
/// # Errors
/// It is neither.
pub fn flag(arguments: &Arguments, name: &str) -> Result<bool, CommandError> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(text)) if matches!(text.as_str(), "on" | "true" | "") => Ok(true),
        Some(Value::String(text)) if matches!(text.as_str(), "off" | "false") => Ok(false),
        Some(_) => Err(CommandError::Invalid(format!(
            "\"{name}\" must be on or off"
        ))),
    }
}

#[cfg(test)]
mod tests;
