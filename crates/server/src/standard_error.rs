//! Standard error: messages of the program to people.

use std::io::Write as _;

/// Writes to standard error.
pub(crate) fn write_standard_error(text: &str) {
    // Nothing can be done about a closed standard error.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
