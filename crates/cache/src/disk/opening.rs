//! Opening files of the zone's folder: regular ones only, no links, and without waiting. What else
//! stands there under a name of ours, a FIFO or a link to a device, is nobody's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a stored response to read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true), path)
}

/// Opens a stored response to change what is said of it.
pub(crate) fn open_to_change(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).write(true), path)
}

/// Makes a file that nobody else has.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY;
    let file = options.custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}
