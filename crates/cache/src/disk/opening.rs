//! Opening of files in the zone's folder: regular files only, no links, and without waiting. Any
//! other file under such a name, a FIFO or a link to a device, is ignored.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a stored response to read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true), path)
}

/// Opens a stored response to change its metadata.
pub(crate) fn open_to_change(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).write(true), path)
}

/// Creates a new file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY;
    let file = options.custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}
