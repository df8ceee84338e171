//! Files that directives name, below the folder of the configuration.

use std::fmt;
use std::io;
use std::path::PathBuf;

use turnpike_conf::{ConfError, Entry, View};
use turnpike_lane::log::Errno;
use turnpike_plan::builder::Builder;

use super::private_key;

/// Why a file cannot be read.
pub(super) struct Unreadable(io::Error);

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", Errno(&self.0))
    }
}

/// The name of a file in a directive: its last argument.
pub(super) fn name_of(entry: &Entry) -> &str {
    entry.arguments.last().map_or("", |word| &word.text)
}

/// The full path and the bytes of the file that a directive names; it may be a FIFO.
pub(super) fn read<S>(
    builder: &mut Builder<'_, S>,
    entry: &Entry,
) -> (String, Result<Vec<u8>, Unreadable>) {
    let path = path(builder, entry);
    let read = builder.environment.file_or_fifo(&path);
    let bytes = read.map(|bytes| bytes.to_vec()).map_err(Unreadable);
    (path.display().to_string(), bytes)
}

/// The passwords of the file that a directive names, one a line; it may be a FIFO.
///
/// # Errors
/// nginx's words.
pub(super) fn passwords<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    entry: &Entry,
) -> Result<Vec<Vec<u8>>, ConfError> {
    let path = path(builder, entry);
    let read = builder.environment.file_or_fifo(&path);
    let text = read.map_err(|error| {
        let (path, errno) = (path.display(), Errno(&error));
        view.error(entry.span, format!("open() \"{path}\" failed {errno}"))
    })?;
    Ok(private_key::passwords(&text))
}

/// The full path of the file that a directive names.
pub(super) fn path<S>(builder: &Builder<'_, S>, entry: &Entry) -> PathBuf {
    builder.environment.conf_folder().join(name_of(entry))
}
