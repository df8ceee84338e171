//! The result of every rule of tidy.

use std::fmt;
use std::path::{Path, PathBuf};

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) text: String,
}

impl Finding {
    pub(super) fn new(file: &Path, line: usize, text: impl Into<String>) -> Finding {
        Finding {
            file: file.to_path_buf(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}:{}: {}",
            self.file.display(),
            self.line,
            self.text
        )
    }
}
