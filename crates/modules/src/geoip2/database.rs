//! A database: a file's content in memory, which may be replaced while requests look into it.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use maxminddb::Reader;
use turnpike_lane::files;
use turnpike_lane::sys::file::Links;
use turnpike_lane::sys::process::unix_s;

/// The largest file that is read, in bytes. The largest that MaxMind offers has some hundred
/// megabytes; memory for more than this would be a mistake in the name of the file.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// A database of a plan.
pub(super) struct Database {
    path: PathBuf,
    content: ArcSwap<Content>,
    checked_s: AtomicI64,
}

/// What was read from the file at one time.
pub(super) struct Content {
    pub(super) reader: Reader<Vec<u8>>,
    stamp: Stamp,
}

/// What of a file changes when it is replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// The stamp of the file at a path.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&path.metadata()?))
    }
}

impl From<&std::fs::Metadata> for Stamp {
    fn from(metadata: &std::fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed_s: metadata.mtime(),
            changed_ns: metadata.mtime_nsec(),
        }
    }
}

impl Content {
    fn read(path: &Path) -> Result<Self, String> {
        let mut file =
            files::open_regular(path, Links::Follow).map_err(|error| error.to_string())?;
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if metadata.len() > FILE_BYTES_MAX {
            return Err(format!("the file has more than {FILE_BYTES_MAX} bytes"));
        }
        let mut bytes = Vec::new();
        file.by_ref()
            .take(FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        let reader = Reader::from_source(bytes).map_err(|error| error.to_string())?;
        let stamp = Stamp::from(&metadata);
        Ok(Self { reader, stamp })
    }
}

impl Database {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no MaxMind DB file.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        Ok(Self {
            path: path.to_path_buf(),
            content: ArcSwap::from_pointee(Content::read(path)?),
            checked_s: AtomicI64::new(now_s()),
        })
    }

    /// The content in force.
    pub(super) fn content(&self) -> Arc<Content> {
        self.content.load_full()
    }

    /// The file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again if it has changed, and returns whether it has. Blocks.
    ///
    /// # Errors
    /// As for [`Database::open`]; the content in force stays.
    pub(super) fn check(&self) -> Result<bool, String> {
        self.checked_s.store(now_s(), Ordering::Relaxed);
        let stamp = Stamp::of(&self.path).map_err(|error| error.to_string())?;
        if stamp == self.content.load().stamp {
            return Ok(false);
        }
        self.content.store(Arc::new(Content::read(&self.path)?));
        Ok(true)
    }

    /// When the file was last looked at, in seconds since 1970.
    pub(super) fn checked_s(&self) -> i64 {
        self.checked_s.load(Ordering::Relaxed)
    }
}

impl Content {
    /// When the file was changed, in seconds since 1970.
    pub(super) fn changed_s(&self) -> i64 {
        self.stamp.changed_s
    }
}

fn now_s() -> i64 {
    unix_s().cast_signed()
}
