//! Commands that directive families offer to whoever operates the server: verbs of the control
//! socket.
//!
//! A family lists its verbs as rows, so that help and reference derive from them, and gives what
//! carries them out when a plan is built. Commands run on threads of the serving process that are
//! nobody's lane: they may take their time, and must share with lanes only what bears it.

use std::fmt;

pub use serde_json::{Value, json};

/// The members of a request beside its verb.
pub type Arguments = serde_json::Map<String, Value>;

/// One verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRow {
    /// The name: the family's subject, a dot, and what is done, as `upstream.list`.
    pub name: &'static str,
    /// The arguments, as the reference shows them: `name=UPSTREAM [peer=ADDRESS]`.
    pub arguments: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
}

/// What carries a verb out.
pub trait Command: Send + Sync {
    /// Does it, and says what was done. May block; it is on no lane.
    ///
    /// # Errors
    /// Why it was not done. Nothing must have changed then, or the message must say what has.
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError>;
}

/// Why a command was not carried out, by blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// An argument is missing or cannot be understood.
    Invalid(String),
    /// What an argument names does not exist.
    NotFound(String),
    /// The command failed.
    Failed(String),
}

impl CommandError {
    /// The word that programs tell errors apart by.
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

/// The text argument of that name; `None` where it is not given.
///
/// # Errors
/// When it is something else than a text.
pub fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, CommandError> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(CommandError::Invalid(format!("\"{name}\" must be a text"))),
    }
}

/// The text argument of that name, which must be given.
///
/// # Errors
/// When it is missing or something else than a text.
pub fn required_text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, CommandError> {
    text(arguments, name)?.ok_or_else(|| CommandError::Invalid(format!("\"{name}\" must be given")))
}

/// The number argument of that name; a text of digits does as well, as a command line has it.
///
/// # Errors
/// When it is something else than a whole number of 0 or more.
pub fn number(arguments: &Arguments, name: &str) -> Result<Option<u64>, CommandError> {
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_u64(),
    };
    let wrong = || CommandError::Invalid(format!("\"{name}\" must be a whole number"));
    number.map(Some).ok_or_else(wrong)
}

/// The switch of that name; a word does as well (`on`, `off`, `true`, `false`), as a command line
/// has it. `false` where it is not given.
///
/// # Errors
/// When it is something else.
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
