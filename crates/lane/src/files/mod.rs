//! The files that a lane serves: opened under a rule for symbolic links, and kept open in a cache,
//! or kept in memory while their metadata are unchanged.
//!
//! All types belong to one lane and are not `Send`. Paths are bytes, and the time is a parameter:
//! this module must not know requests, and must not read a clock.

use std::{
    cell::OnceCell,
    fmt, io,
    ops::Deref,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
};

use crate::sys::file::{self, Metadata, Purpose};

mod cache;
mod closing;
mod content;
mod disk;
mod regular;
mod symlinks;
#[cfg(test)]
mod tests;

pub use cache::{CONTENT_BYTES_MAX, CONTENT_TOTAL_BYTES_MAX, CacheRules, OpenFileCache};
pub use closing::{LARGE_FILE_BYTES, close_on_thread};
pub use content::{ContentCache, Now};
pub use disk::{read_at_once, read_on_thread};
pub use regular::{open_own, open_regular};
pub use symlinks::{SymlinkRule, Symlinks};

/// The system call that failed; nginx's log messages contain its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening by the whole path.
    Open,
    /// Opening component by component, when symbolic links are watched.
    OpenAt,
    /// Reading the metadata of a path.
    Stat,
    /// Reading the metadata of an open file.
    StatOpen,
}

impl Operation {
    /// The name in nginx's messages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Open => "open()",
            Operation::OpenAt => "openat()",
            Operation::Stat => "stat()",
            Operation::StatOpen => "fstat()",
        }
    }
}

/// Why a file could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The failed operation.
    pub operation: Operation,
    /// The kernel's error number (`ENOENT`, `EACCES`, ...).
    pub errno: i32,
}

impl FileError {
    fn new(operation: Operation, error: &io::Error) -> FileError {
        FileError {
            operation,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(formatter, "{} failed: {error}", self.operation.name())
    }
}

impl std::error::Error for FileError {}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        io::Error::from_raw_os_error(error.errno)
    }
}

/// A file in its state at opening. A directory has only metadata, and no descriptor. A file with
/// its content in memory may have none either.
#[derive(Debug)]
pub struct OpenFile {
    descriptor: Option<OwnedFd>,
    metadata: Metadata,
    content: OnceCell<Box<[u8]>>,
}

impl OpenFile {
    /// The descriptor; `None` for a directory, and for some files with their content in memory.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor
            .as_ref()
            .map(|descriptor| descriptor.as_fd())
    }

    /// The metadata of the file when it was opened or last found unchanged.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The complete content, if it is in memory: it has exactly `metadata().size_bytes` bytes.
    pub fn content(&self) -> Option<&[u8]> {
        self.content.get().map(|content| &**content)
    }

    /// Reads at `offset`, from memory or from the file. A directory reads as `EISDIR`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(content) = self.content() {
            let start = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(content.len());
            let count = buffer.len().min(content.len() - start);
            buffer[..count].copy_from_slice(&content[start..start + count]);
            return Ok(count);
        }
        match self.descriptor() {
            Some(descriptor) => file::read_at(descriptor, buffer, offset),
            None => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        }
    }

    fn described(metadata: Metadata) -> OpenFile {
        OpenFile {
            descriptor: None,
            metadata,
            content: OnceCell::new(),
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.metadata.size_bytes < LARGE_FILE_BYTES {
            return;
        }
        let last = |descriptor: &OwnedFd| file::is_unlinked(descriptor.as_fd());
        if let Some(descriptor) = self.descriptor.take_if(|descriptor| last(descriptor)) {
            close_on_thread(descriptor.into());
        }
    }
}

/// A file in use: owned, or shared with the cache.
#[derive(Debug)]
pub enum FileHandle {
    /// Opened for this use; closed when dropped.
    Owned(OpenFile),
    /// Shared with the cache and with other users.
    Shared(Rc<OpenFile>),
}

impl Deref for FileHandle {
    type Target = OpenFile;

    fn deref(&self) -> &OpenFile {
        match self {
            FileHandle::Owned(file) => file,
            FileHandle::Shared(file) => file,
        }
    }
}

/// Opens `path` without a cache: open and fstat, and close if it is a directory. Does not allocate.
pub fn open(path: &[u8], symlinks: Symlinks) -> Result<OpenFile, FileError> {
    let descriptor = symlinks::open_under(path, symlinks, Purpose::Read)?;
    let metadata = file::metadata(descriptor.as_fd())
        .map_err(|error| FileError::new(Operation::StatOpen, &error))?;
    if metadata.is_directory() {
        return Ok(OpenFile::described(metadata));
    }
    Ok(OpenFile {
        descriptor: Some(descriptor),
        metadata,
        content: OnceCell::new(),
    })
}

/// The metadata of `path` without a cache; one system call if symbolic links are not restricted.
pub fn inspect(path: &[u8], symlinks: Symlinks) -> Result<Metadata, FileError> {
    if symlinks.rule == SymlinkRule::Off {
        return file::metadata_of(path, file::Links::Follow)
            .map_err(|error| FileError::new(Operation::Stat, &error));
    }
    let descriptor = symlinks::open_under(path, symlinks, Purpose::Read)?;
    file::metadata(descriptor.as_fd()).map_err(|error| FileError::new(Operation::StatOpen, &error))
}

/// Opens a directory, to look up names below it, under the rule.
///
/// # Errors
/// The call that failed; a refused link is `ENOTDIR` or `ELOOP`.
pub fn open_directory(path: &[u8], symlinks: Symlinks) -> Result<OwnedFd, FileError> {
    symlinks::open_under(path, symlinks, Purpose::LocateDirectory)
}
