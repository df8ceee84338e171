//! Why a change of files is not made: statuses, and what the log says.

use std::io;
use std::path::Path;

use turnpike_http::Quoted;
use turnpike_lane::log::{Errno, Level};

use crate::common::files;

/// The status of what is locked (RFC 4918 section 11.3).
pub(super) const LOCKED: u16 = 423;

/// Why a request is refused: the status, and what the log says.
pub(super) type Refusal = (u16, String);

/// Why a change was not made.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) level: Level,
    pub(super) text: String,
}

impl Failure {
    /// A failed call; `absent` is the status where something is not there.
    pub(super) fn of(call: &str, path: &Path, error: &io::Error, absent: u16) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        let (status, level) = match errno {
            errno if files::is_absence(errno) => (absent, Level::Error),
            errno if files::is_refused_link(errno) => (403, Level::Error),
            libc::EACCES | libc::EPERM => (403, Level::Error),
            libc::EEXIST => (405, Level::Error),
            libc::ENOSPC | libc::EDQUOT => (507, Level::Crit),
            _ => (500, Level::Crit),
        };
        let (path, errno) = (quoted(path), Errno(error));
        Self {
            status,
            level,
            text: format!("{call} \"{path}\" failed {errno}"),
        }
    }

    /// The failure of a request for a path that another client has locked.
    pub(super) fn locked(path: &Path) -> Self {
        Self::new(LOCKED, format!("\"{}\" is locked", quoted(path)))
    }

    /// The failure of a request for what is no file, as a FIFO: opening one waits for the other
    /// side, and a device may do anything.
    pub(super) fn no_file(path: &Path) -> Self {
        Self::new(403, format!("\"{}\" is not a regular file", quoted(path)))
    }

    pub(super) fn new(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            level: Level::Error,
            text: text.into(),
        }
    }
}

/// The path as logs have it.
pub(super) fn quoted(path: &Path) -> String {
    Quoted(path.as_os_str().as_encoded_bytes()).to_string()
}
