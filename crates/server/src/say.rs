//! Standard error, where a person reads what the program says.

use std::io::Write as _;

/// Writes to standard error.
pub(crate) fn say(text: &str) {
    // Nothing can be done about a closed standard error.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
