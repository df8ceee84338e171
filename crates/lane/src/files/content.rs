//! The content of small files that are asked for again and again, where no cache of open files is
//! configured.
//!
//! Such a location promises that a changed file is seen at the next request. So every use asks the
//! file system about the path, and the content counts only while the answer is the one that it was
//! read under: device, inode, mode, owner, size, blocks, and the times of the last change of
//! content and inode, in nanoseconds. One system call takes the place of four, and no descriptor
//! stays open. What times cannot tell is never kept, see [`SETTLED_MS`] and [`TRUSTED_MS`].

use std::os::fd::AsFd as _;
use std::rc::Rc;

use quick_cache::Weighter;
use quick_cache::unsync::Cache;

use super::cache::load_content;
use super::{FileError, FileHandle, OpenFile, Symlinks, inspect, open};
use crate::sys::file::{self, Metadata};

/// Most bytes that one cache holds, so that each lane has room for some thousand small files.
pub(super) const TOTAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file that was changed less than so many milliseconds ago is not kept: a second change within
/// one tick of the file system's clock (at most a second on those we trust) would leave its times
/// as they are.
pub(super) const SETTLED_MS: u64 = 2_000;

/// Content is read anew after so many milliseconds, whatever the file system says: who writes
/// through a mapping (mmap) moves the times only with the first store to each page.
pub(super) const TRUSTED_MS: u64 = 1_000;

/// What an entry costs beside its path and its content, in bytes.
const ENTRY_BYTES: u64 = 256;

/// Entries that room is made for at first.
const ENTRIES_EXPECTED: usize = 256;

/// Paths that are remembered as asked for once: content is only kept from the second time on, so
/// that reading a large tree through once costs nothing. A power of two.
const SEEN_MAX: usize = 1024;

/// The content of hot small files by path.
pub struct ContentCache {
    entries: Cache<Box<[u8]>, Entry, Weigh, foldhash::fast::RandomState>,
    /// Hashes of paths that were asked for, each at its place.
    seen: Box<[u64]>,
    hasher: foldhash::fast::RandomState,
}

#[derive(Clone)]
struct Entry {
    file: Rc<OpenFile>,
    read_ms: u64,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Box<[u8]>, Entry> for Weigh {
    fn weight(&self, path: &Box<[u8]>, entry: &Entry) -> u64 {
        let content = entry.file.content().map_or(0, <[u8]>::len);
        ENTRY_BYTES + path.len() as u64 + content as u64
    }
}

/// The time at which something is asked for, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Of a clock that only goes forward.
    pub monotonic_ms: u64,
    /// Since 1970.
    pub unix_ms: u64,
}

impl ContentCache {
    /// Makes a cache that holds nothing.
    pub fn new() -> Self {
        let hasher = foldhash::fast::RandomState::default();
        Self {
            entries: Cache::with(
                ENTRIES_EXPECTED,
                TOTAL_BYTES_MAX,
                Weigh,
                hasher.clone(),
                Default::default(),
            ),
            seen: vec![0; SEEN_MAX].into(),
            hasher,
        }
    }

    /// Opens `path`, following symbolic links, or lends its content, which is kept up to
    /// `bytes_max`.
    ///
    /// # Errors
    /// Those of [`open`].
    pub fn open(&mut self, path: &[u8], bytes_max: u64, now: Now) -> Result<FileHandle, FileError> {
        if let Some(entry) = self.entries.get(path) {
            let is_trusted = now.monotonic_ms.saturating_sub(entry.read_ms) < TRUSTED_MS;
            if is_trusted && inspect(path, Symlinks::FOLLOWED) == Ok(entry.file.metadata) {
                return Ok(FileHandle::Shared(Rc::clone(&entry.file)));
            }
            let known = self.entries.remove(path).map(|(_, entry)| entry.file);
            return self.open_to_keep(path, bytes_max, now, known);
        }
        if self.has_seen(path) {
            return self.open_to_keep(path, bytes_max, now, None);
        }
        open(path, Symlinks::FOLLOWED).map(FileHandle::Owned)
    }

    /// Bytes that are held.
    #[cfg(test)]
    pub(super) fn total_bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// Whether `path` was asked for before; it was from now on.
    fn has_seen(&mut self, path: &[u8]) -> bool {
        use std::hash::BuildHasher as _;
        let hash = self.hasher.hash_one(path);
        let place = &mut self.seen[hash as usize % SEEN_MAX];
        std::mem::replace(place, hash) == hash
    }

    /// Opens a file and keeps what may be kept. If all is as it was known, it stays the same open
    /// file: others may know it by that.
    fn open_to_keep(
        &mut self,
        path: &[u8],
        bytes_max: u64,
        now: Now,
        known: Option<Rc<OpenFile>>,
    ) -> Result<FileHandle, FileError> {
        let mut file = open(path, Symlinks::FOLLOWED)?;
        if !may_be_kept(&file, now) {
            return Ok(FileHandle::Owned(file));
        }
        load_content(&file, bytes_max);
        if file.content().is_none() {
            return Ok(FileHandle::Owned(file));
        }
        file.descriptor = None;
        let is_same = |known: &Rc<OpenFile>| {
            known.metadata == file.metadata && known.content() == file.content()
        };
        let file = match known.filter(is_same) {
            Some(known) => known,
            None => Rc::new(file),
        };
        let entry = Entry {
            file: Rc::clone(&file),
            read_ms: now.monotonic_ms,
        };
        self.entries.insert(path.into(), entry);
        Ok(FileHandle::Shared(file))
    }
}

impl Default for ContentCache {
    fn default() -> Self {
        Self::new()
    }
}

fn may_be_kept(file: &OpenFile, now: Now) -> bool {
    let Some(descriptor) = &file.descriptor else {
        return false;
    };
    file.metadata.is_file()
        && is_settled(&file.metadata, now.unix_ms)
        && file::is_on_local_disk(descriptor.as_fd()).unwrap_or(false)
}

/// Whether every later change of a file shows in its times.
fn is_settled(metadata: &Metadata, unix_ms: u64) -> bool {
    let changed_s = metadata.changed_s.max(metadata.modified_s);
    let changed_ms = u64::try_from(changed_s).map_or(0, |seconds| seconds.saturating_mul(1000));
    // The fraction is rounded up.
    unix_ms >= changed_ms.saturating_add(1000 + SETTLED_MS)
}
