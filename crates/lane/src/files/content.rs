//! The content of frequently used small files, for locations without a cache of open files.
//!
//! Such a location must show a changed file at the next request. So each use reads the metadata of
//! the path, and the content is used only if it equals the metadata at the time of the read:
//! device, inode, mode, owner, size, blocks, and the times of the last change of content and inode,
//! in nanoseconds. One system call replaces four, and no descriptor stays open; requests that came
//! together share it. Files with changes
//! that the times might not show are not kept, see [`SETTLED_MS`] and [`TRUSTED_MS`].

use std::cell::Cell;
use std::os::fd::AsFd as _;
use std::rc::Rc;

use quick_cache::Weighter;
use quick_cache::unsync::Cache;

use super::cache::load_content;
use super::{FileError, FileHandle, OpenFile, Symlinks, inspect, open};
use crate::sys::file::{self, Metadata};

/// The most bytes in one cache: enough for some thousand small files per lane.
pub(super) const TOTAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file that was changed less than this many milliseconds ago is not kept: a second change within
/// one tick of the file system's clock (at most a second on the supported ones) would not change
/// its times.
pub(super) const SETTLED_MS: u64 = 2_000;

/// Content is read again after this many milliseconds, whatever the metadata: a write through a
/// mapping (mmap) changes the times only with the first store to each page.
pub(super) const TRUSTED_MS: u64 = 1_000;

/// The size of an entry without its path and content, in bytes.
const ENTRY_BYTES: u64 = 256;

/// The initial capacity, in entries.
const ENTRIES_EXPECTED: usize = 256;

/// The number of remembered paths that were used once. Content is kept only from the second use on,
/// so that one pass over a large tree does not fill the cache. A power of two.
const SEEN_MAX: usize = 1024;

/// The content of frequently used small files by path.
pub struct ContentCache {
    entries: Cache<Box<[u8]>, Entry, Weigh, foldhash::fast::RandomState>,
    /// The hashes of used paths, each at its index.
    seen: Box<[u64]>,
    hasher: foldhash::fast::RandomState,
}

#[derive(Clone)]
struct Entry {
    file: Rc<OpenFile>,
    read_ms: u64,
    /// The batch that the metadata were last found unchanged for.
    batch: Cell<Option<u64>>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Box<[u8]>, Entry> for Weigh {
    fn weight(&self, path: &Box<[u8]>, entry: &Entry) -> u64 {
        let content = entry.file.content().map_or(0, <[u8]>::len);
        ENTRY_BYTES + path.len() as u64 + content as u64
    }
}

/// The time of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds by a monotonic clock.
    pub monotonic_ms: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// The batch of requests that had all come before the first of them asks; `None`: the request
    /// came alone. What one of them finds, the others may use.
    pub batch: Option<u64>,
}

impl ContentCache {
    /// An empty cache.
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

    /// Opens `path`, following symbolic links, or shares its cached content. Content of up to
    /// `bytes_max` is kept.
    ///
    /// # Errors
    /// Those of [`open`].
    pub fn open(&mut self, path: &[u8], bytes_max: u64, now: Now) -> Result<FileHandle, FileError> {
        if let Some(entry) = self.entries.get(path) {
            let is_trusted = now.monotonic_ms.saturating_sub(entry.read_ms) < TRUSTED_MS;
            let is_of_batch = now.batch.is_some() && entry.batch.get() == now.batch;
            let is_unchanged =
                is_of_batch || inspect(path, Symlinks::FOLLOWED) == Ok(entry.file.metadata);
            if is_trusted && is_unchanged {
                entry.batch.set(now.batch);
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

    /// The cached bytes.
    #[cfg(test)]
    pub(super) fn total_bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// Whether `path` was used before; it counts as used from now on.
    fn has_seen(&mut self, path: &[u8]) -> bool {
        use std::hash::BuildHasher as _;
        let hash = self.hasher.hash_one(path);
        let place = &mut self.seen[hash as usize % SEEN_MAX];
        std::mem::replace(place, hash) == hash
    }

    /// Opens a file and keeps its content if allowed. If its metadata are unchanged, the same open
    /// file is kept, since others may compare it by identity.
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
            batch: Cell::new(now.batch),
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

/// Whether every later change of a file must change its times.
fn is_settled(metadata: &Metadata, unix_ms: u64) -> bool {
    let changed_s = metadata.changed_s.max(metadata.modified_s);
    let changed_ms = u64::try_from(changed_s).map_or(0, |seconds| seconds.saturating_mul(1000));
    // The fraction is rounded up.
    unix_ms >= changed_ms.saturating_add(1000 + SETTLED_MS)
}
