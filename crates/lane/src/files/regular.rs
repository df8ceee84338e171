//! Opening of regular files only, for files that are read completely and for files of our own:
//! opening a FIFO without a writer would block, and a device may have any behaviour.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{FileError, OpenFile, Operation};
use crate::sys::file::{self, Links, Purpose};

/// Opens a regular file for reading.
///
/// # Errors
/// Those of open(2); `EISDIR` for a directory, and `InvalidInput` for any other file that is not
/// regular.
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

/// Opens a file of our own to serve: a regular file, and no link to one. It makes as many system
/// calls as [`super::open`] and does not allocate.
///
/// # Errors
/// The failed call and its error; `EINVAL` if it is not a regular file.
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
        metadata,
        content: OnceCell::new(),
    })
}
