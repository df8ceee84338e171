//! Why a pattern is not a regular expression.

use std::fmt;
use turnpike_conf::Complaint;

/// PCRE2's error about a pattern. The message is nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    /// PCRE2's words.
    pub reason: String,
    /// The pattern as written.
    pub pattern: String,
    /// The part of the pattern that begins with the fault; empty if the fault is at its end.
    pub rest: String,
}

impl fmt::Display for RegexError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, pattern) = (&self.reason, &self.pattern);
        write!(out, "pcre2_compile() failed: {reason} in \"{pattern}\"")?;
        match self.rest.as_str() {
            "" => Ok(()),
            rest => write!(out, " at \"{rest}\""),
        }
    }
}

impl std::error::Error for RegexError {}

impl From<RegexError> for Complaint {
    fn from(error: RegexError) -> Complaint {
        error.to_string().into()
    }
}
