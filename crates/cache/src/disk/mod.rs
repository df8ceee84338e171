//! Stored responses as files: nginx's folders and names, a format of our own with checksums.
//!
//! ```text
//!  header (128 bytes: lengths, times, checksums) │ content │ key, host, selection, head
//! ```
//!
//! The content stands before what describes it, so that a 304 can replace the description without
//! the content being copied. A file is written under another name and then renamed, so that no
//! half of one is ever found; one that was cut short or altered afterwards shows in its checksums
//! and is never served.

mod format;
mod opening;
mod writer;

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use md5::{Digest, Md5};

pub use format::HEADER_BYTES;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use format::fuzzing;
pub use writer::Writer;
pub(crate) use writer::is_abandoned;

pub(crate) use opening::{open, open_to_change};

pub(crate) use format::{Description, is_ours, read, rewrite_description, rewrite_timing, verify};

use crate::partial::Part;
use crate::vary::Selection;
use turnpike_wire::hex;

/// Folder levels at most; nginx's.
pub(crate) const LEVELS_MAX: usize = 3;

/// What a file occupies is counted in blocks of this size.
const BLOCK_BYTES: u64 = 4096;

/// What a disk zone is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSettings {
    pub folder: PathBuf,
    /// Lengths of the names of folders below it, 1 or 2 each (`levels`).
    pub levels: Vec<usize>,
    /// Where files are written first; none: beside where they will be (`use_temp_path=off`).
    pub temporary_folder: Option<PathBuf>,
    /// Most bytes of all files; `u64::MAX` without a limit (`max_size`).
    pub bytes_max: u64,
    /// Bytes that the file system keeps free (`min_free`).
    pub free_bytes_min: u64,
    /// What nobody has asked for during so many seconds goes (`inactive`).
    pub inactive_s: u64,
    /// How the manager works.
    pub manager: Pace,
    /// How the loader works.
    pub loader: Pace,
}

/// How much is done in a row before a pause, so that disks are not held up.
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
    /// What it was told.
    pub settings: DiskSettings,
    /// Whether everything in the folder is known.
    pub(crate) loaded: AtomicBool,
    /// Whether somebody takes care of the folder, who will load it.
    pub(crate) managed: AtomicBool,
}

/// What tells a file from one that was changed or put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Inode number.
    pub inode: u64,
    pub size_bytes: u64,
    /// Last change of the content: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Last change of the inode, which no program can set: seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl Identity {
    /// Of what stands at a path.
    ///
    /// # Errors
    /// The system's.
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
    /// A folder, not looked at yet.
    pub fn new(settings: DiskSettings) -> Self {
        Self {
            settings,
            loaded: AtomicBool::new(false),
            managed: AtomicBool::new(false),
        }
    }

    /// Where a response is kept: nginx's name for the key, if no variant is told apart.
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

/// MD5 of the key in hexadecimal, as nginx names its files.
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

/// Bytes in whole blocks.
pub(crate) fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}

/// Whether a file's name is one of ours.
pub(crate) fn is_stored_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
