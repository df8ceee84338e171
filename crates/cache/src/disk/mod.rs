//! Stored responses as files: nginx's folders and names, a format of our own with checksums.
//!
//! ```text
//!  header (128 bytes: lengths, times, checksums) │ content │ key, host, selection, head
//! ```
//!
//! The content comes before its description, so that a 304 can replace the description without
//! copying the content. A file is written under a temporary name and then renamed, so that it is
//! never found half written. The checksums reveal a file that was cut or altered later; it is never
//! served.

mod format;
mod opening;
mod writer;

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use md5::{Digest, Md5};

pub use format::HEADER_BYTES;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use format::fuzzing;
pub(crate) use writer::is_abandoned;
pub use writer::{WriteFailure, Writer};

pub(crate) use opening::{open, open_to_change};

pub(crate) use format::{Description, is_ours, read, rewrite_description, rewrite_timing, verify};

use crate::partial::Part;
use crate::vary::Selection;
use turnpike_wire::hex;

/// Most folder levels; nginx's limit.
pub(crate) const LEVELS_MAX: usize = 3;

/// The block size for the space of a file.
const BLOCK_BYTES: u64 = 4096;

/// The settings of a disk zone.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    pub folder: PathBuf,
    /// The lengths of the names of its folder levels, 1 or 2 each (`levels`).
    pub levels: Vec<usize>,
    /// The folder for unfinished files; `None`: the final folder (`use_temp_path=off`).
    pub temporary_folder: Option<PathBuf>,
    /// The limit of all files in bytes; `u64::MAX` without one (`max_size`).
    pub bytes_max: u64,
    /// The space that must stay free on the file system, in bytes (`min_free`).
    pub free_bytes_min: u64,
    /// The time after which an unused response is removed, in seconds (`inactive`).
    pub inactive_s: u64,
    /// The pace of the manager.
    pub manager: Pace,
    /// The pace of the loader.
    pub loader: Pace,
    /// What closes files that may be large.
    pub closing: Closing,
}

/// What closes files that may be large and have no name: their blocks are freed then, which may
/// take long.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// Smaller files are closed at once.
    pub bytes_min: u64,
    /// Closes a file without making the caller wait.
    pub close: fn(File),
}

impl Closing {
    /// Opens a file that is about to lose its name, so that its blocks are not freed by that;
    /// `None` if it is small, or is not there.
    fn hold(&self, path: &Path) -> Option<File> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        self.hold_described(path, &metadata)
    }

    fn hold_described(&self, path: &Path, metadata: &Metadata) -> Option<File> {
        let is_large = metadata.is_file() && metadata.len() >= self.bytes_min;
        is_large.then(|| opening::open(path).ok())?
    }
}

/// The work between two pauses, so that the disk is not overloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Files in a row.
    pub files: u64,
    /// Time in a row, in milliseconds.
    pub threshold_ms: u64,
    /// The pause after that, in milliseconds.
    pub sleep_ms: u64,
}

/// A zone's folder.
pub struct Disk {
    /// The settings.
    pub settings: DiskSettings,
    /// Whether every file in the folder is known.
    pub(crate) loaded: AtomicBool,
    /// Whether a manager exists, which will load the folder.
    pub(crate) managed: AtomicBool,
}

/// The identity of a file, which shows whether it was changed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Inode number.
    pub inode: u64,
    pub size_bytes: u64,
    /// Last change of the content: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Last change of the inode, which programs cannot set: seconds and nanoseconds.
    pub changed: (i64, i64),
}

/// The number of a file, which stays the same however its content changes, and tells it from the
/// one that takes its path later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileNumber {
    inode: u64,
    /// An inode's number is given again after the file has gone; `None` where the file system does
    /// not record the time.
    created: Option<SystemTime>,
}

impl FileNumber {
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::of(&metadata))
    }

    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            created: metadata.created().ok(),
        }
    }
}

impl Identity {
    /// The identity of the file at a path.
    ///
    /// # Errors
    /// The system's error.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::of(&metadata))
    }
}

impl Disk {
    /// A folder that has not been loaded yet.
    pub fn new(settings: DiskSettings) -> Self {
        Self {
            settings,
            loaded: AtomicBool::new(false),
            managed: AtomicBool::new(false),
        }
    }

    /// Removes the file at a path if it is the one of this number. The caller keeps this process
    /// from placing another one meanwhile.
    pub(crate) fn remove(&self, path: &Path, number: FileNumber) {
        let Ok(metadata) = std::fs::symlink_metadata(path) else {
            return;
        };
        if FileNumber::of(&metadata) != number {
            return;
        }
        let closing = self.settings.closing;
        let held = closing.hold_described(path, &metadata);
        // It may have gone since then, which is fine.
        let _ = std::fs::remove_file(path);
        if let Some(file) = held {
            (closing.close)(file);
        }
    }

    /// The path of a response: nginx's name for the key, unless there are variants.
    pub fn path(
        &self,
        key: &[u8],
        selection: &Selection,
        for_head: bool,
        part: Option<&Part>,
    ) -> PathBuf {
        let name = file_name(key, selection, for_head, part);
        let mut path = self.settings.folder.clone();
        let mut end = name.len();
        for length in self.settings.levels.iter().take(LEVELS_MAX) {
            let start = end.saturating_sub(*length);
            path.push(&name[start..end]);
            end = start;
        }
        path.push(name);
        path
    }
}

/// The MD5 of the key in hexadecimal, which is nginx's file name.
fn file_name(key: &[u8], selection: &Selection, for_head: bool, part: Option<&Part>) -> String {
    let mut digest = Md5::new();
    digest.update(key);
    for (name, value) in selection.iter() {
        digest.update(b"\0");
        digest.update(name);
        digest.update(if value.is_some() { b"=" } else { b"-" });
        digest.update(value.unwrap_or_default());
    }
    if for_head {
        digest.update(b"\0HEAD");
    }
    if let Some(part) = part {
        digest.update(b"\0");
        digest.update(part.content_range(&part.bytes));
    }
    hex::text(&digest.finalize())
}

/// The size in whole blocks.
pub(crate) fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}

/// Whether a file's name has our format.
pub(crate) fn is_stored_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
