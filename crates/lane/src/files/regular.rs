//! Regular files and nothing else, for what is read whole and for files of our own: a FIFO without
//! a writer would hold whoever opens it, and a device may do anything.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{FileError, OpenFile, Operation};
use crate::sys::file::{self, Links, Purpose};

/// Opens a regular file to read.
///
/// # Errors
/// Those of open(2); `EISDIR` for a directory, and `InvalidInput` for all else that is no regular
/// file.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let file: File = file::open(path.as_os_str().as_bytes(), Purpose::Read, links)?.into();
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok(file)
    } else if metadata.is_dir() {
        Err(io::Error::from_raw_os_error(libc::EISDIR))
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

/// Opens a file of ours to serve: a regular one, and no link to one. As many system calls as
/// [`super::open`] makes; allocates nothing.
///
/// # Errors
/// The call that failed, and why; `EINVAL` where it is no regular file.
pub fn open_own(path: &[u8]) -> Result<OpenFile, FileError> {
    let descriptor = file::open(path, Purpose::Read, Links::Refuse)
        .map_err(|error| FileError::new(Operation::Open, &error))?;
    let metadata = file::metadata(descriptor.as_fd())
        .map_err(|error| FileError::new(Operation::StatOpen, &error))?;
    if !metadata.is_file() {
        return Err(FileError {
            operation: Operation::Open,
            errno: libc::EINVAL,
        });
    }
    Ok(OpenFile {
        descriptor: Some(descriptor),
        ..OpenFile::described(metadata)
    })
}
