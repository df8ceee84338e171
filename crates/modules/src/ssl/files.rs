//! Files that directives name, below the folder of the configuration.

use std::fmt;
use std::io;
use std::path::Path;

use turnpike_conf::Entry;
use turnpike_http::plan::Builder;
use turnpike_lane::log::Errno;

/// Why a file cannot be read.
pub(super) struct Unreadable(io::Error);

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", Errno(&self.0))
    }
}

/// The full path and the bytes of the file that a directive's first argument names.
pub(super) fn read(
    builder: &mut Builder<'_>,
    entry: &Entry,
) -> (String, Result<Vec<u8>, Unreadable>) {
    let path = builder
        .environment
        .conf_folder()
        .join(Path::new(entry.argument(0)));
    let read = builder.environment.file(&path);
    let bytes = read.map(|bytes| bytes.to_vec()).map_err(Unreadable);
    (path.display().to_string(), bytes)
}
