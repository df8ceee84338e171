//! Reading folders, for the families that list them or pick from them.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::file::{self, Links, Metadata};

use crate::common::files;

/// Entries read of one folder. A listing of more helps no reader, and the lane serves nobody else
/// meanwhile.
pub(crate) const ENTRIES_MAX: usize = 100_000;

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A regular file, or a link to one.
    File,
    /// A folder, or a link to one.
    Folder,
    /// Anything else, and a link that leads nowhere.
    Other,
}

/// The folder's path without the slash at its end.
pub(crate) fn without_slash(path: &[u8]) -> &[u8] {
    match path {
        [head @ .., _] if !head.is_empty() => head,
        _ => path,
    }
}

/// Opens a folder and gives its entries, hidden ones left out.
///
/// # Errors
/// The status to answer with; the reason is in the log.
pub(crate) fn open(
    exchange: &Exchange,
    path: &[u8],
) -> Result<impl Iterator<Item = DirEntry> + use<>, u16> {
    let entries = fs::read_dir(Path::new(OsStr::from_bytes(path))).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let (level, status) = if files::is_absence(errno) {
            (Level::Error, 404_u16)
        } else if errno == libc::EACCES {
            (Level::Error, 403)
        } else {
            (Level::Crit, 500)
        };
        let (path, words) = (Quoted(path), Errno(&error));
        exchange.log(level, format_args!("opendir() \"{path}\" failed {words}"));
        status
    })?;
    Ok(entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_bytes().first() != Some(&b'.'))
        .take(ENTRIES_MAX))
}

/// What an entry is; the file system is asked again only where the folder does not say.
///
/// # Errors
/// The status to answer with; the reason is in the log.
pub(crate) fn kind(exchange: &Exchange, entry: &DirEntry) -> Result<EntryKind, u16> {
    match entry.file_type() {
        Ok(kind) if kind.is_file() => return Ok(EntryKind::File),
        Ok(kind) if kind.is_dir() => return Ok(EntryKind::Folder),
        Ok(kind) if !kind.is_symlink() => return Ok(EntryKind::Other),
        _ => {}
    }
    match describe(exchange, entry) {
        Ok(metadata) => Ok(kind_of(&metadata)),
        Err(_) => Err(500),
    }
}

/// What the file system says of an entry, and of a link that leads nowhere, of the link itself.
///
/// # Errors
/// The kernel's; it is in the log.
pub(crate) fn describe(exchange: &Exchange, entry: &DirEntry) -> io::Result<Metadata> {
    let path = entry.path();
    let path = path.as_os_str().as_bytes();
    let report = |call: &str, error: io::Error| {
        let (path, words) = (Quoted(path), Errno(&error));
        exchange.log(
            Level::Crit,
            format_args!("{call} \"{path}\" failed {words}"),
        );
        error
    };
    match file::metadata_of(path, Links::Follow) {
        Ok(metadata) => Ok(metadata),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP)) => {
            file::metadata_of(path, Links::Refuse).map_err(|error| report("lstat()", error))
        }
        Err(error) => Err(report("stat()", error)),
    }
}

/// The kind of an entry with this metadata.
pub(crate) fn kind_of(metadata: &Metadata) -> EntryKind {
    if metadata.is_directory() {
        EntryKind::Folder
    } else if metadata.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}
