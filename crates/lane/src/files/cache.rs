//! The open-file cache of one lane: nginx's `open_file_cache`, and the content of small files.
//!
//! A hot file costs one hash, no system call and no allocation. Each call passes its location's
//! rules of validity; the cache itself only limits its size. A change on disk is found when an
//! entry's time has passed, by inode, size and times.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd},
    rc::{Rc, Weak},
};

use slab::Slab;

use super::{FileError, FileHandle, OpenFile, Operation, Symlinks, disk, inspect, open};
use crate::recency::Recency;
use crate::sys::file::{self, Metadata};

/// Largest file whose content is kept in memory: the size of one send buffer. For larger ones
/// sendfile is cheaper than the copy.
pub const CONTENT_BYTES_MAX: u64 = 32 * 1024;

/// The most content in one cache, since `max=` counts entries and could allow gigabytes per lane.
/// Other files are served from their descriptors.
pub const CONTENT_TOTAL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The most inactive entries that one call drops, as in nginx: it limits the cost of a request.
const EXPIRED_PER_CALL_MAX: usize = 2;

/// The cache rules of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// The time for which an entry is valid, in milliseconds (`open_file_cache_valid`).
    pub valid_ms: u64,
    /// The number of uses after which a file is kept open (`open_file_cache_min_uses`).
    pub uses_min: u32,
    /// Whether failures are remembered (`open_file_cache_errors`).
    pub keep_errors: bool,
    /// The symbolic links that the path may contain (`disable_symlinks`).
    pub symlinks: Symlinks,
}

impl Default for CacheRules {
    /// nginx's defaults: 60 s, one use, no errors, all links.
    fn default() -> CacheRules {
        CacheRules {
            valid_ms: 60_000,
            uses_min: 1,
            keep_errors: false,
            symlinks: Symlinks::FOLLOWED,
        }
    }
}

/// Files by path, the least recently used last.
#[derive(Debug)]
pub struct OpenFileCache {
    /// By a fast hash: what is kept are files that exist, and failures only where
    /// `open_file_cache_errors` asks for them.
    index: HashMap<Rc<[u8]>, usize, foldhash::fast::RandomState>,
    entries: Slab<CachedFile>,
    recency: Recency,
    entries_max: usize,
    inactive_ms: u64,
    content_bytes: usize,
}

#[derive(Debug)]
struct CachedFile {
    path: Rc<[u8]>,
    held: Held,
    symlinks: Symlinks,
    uses: u32,
    checked_ms: u64,
    used_ms: u64,
}

/// The state of an entry; a file that is used often passes through them in this order.
#[derive(Debug)]
enum Held {
    /// In use, but not used often enough to stay open after that.
    Lent(Weak<OpenFile>),
    /// Kept open, or a directory, which costs no descriptor.
    Kept(Rc<OpenFile>),
    /// The file could not be opened.
    Failed(FileError),
}

impl OpenFileCache {
    /// A cache for at most `entries_max` paths (at least 1). A path that is not used for
    /// `inactive_ms` is dropped.
    pub fn new(entries_max: usize, inactive_ms: u64) -> OpenFileCache {
        OpenFileCache {
            index: HashMap::default(),
            entries: Slab::new(),
            recency: Recency::default(),
            entries_max: entries_max.max(1),
            inactive_ms,
            content_bytes: 0,
        }
    }

    /// Opens `path`, or shares it from the cache. `now_ms` is the lane's monotonic time in
    /// milliseconds.
    pub fn open(
        &mut self,
        path: &[u8],
        rules: &CacheRules,
        now_ms: u64,
    ) -> Result<FileHandle, FileError> {
        let result = match self.index.get(path) {
            Some(&key) => self.open_known(key, rules, now_ms),
            None => self.open_unknown(path, rules, now_ms),
        };
        self.expire(now_ms);
        self.check_invariants();
        result.map(FileHandle::Shared)
    }

    /// The metadata of `path` without opening it: from a valid entry, or from the file system.
    /// Directories and (if the rules allow it) failures are cached.
    pub fn inspect(
        &mut self,
        path: &[u8],
        rules: &CacheRules,
        now_ms: u64,
    ) -> Result<Metadata, FileError> {
        let known = self.index.get(path).copied();
        if let Some(key) = known
            && let Some(answer) = self.recall(key, rules, now_ms)
        {
            return answer;
        }
        let result = inspect(path, rules.symlinks);
        let held = match &result {
            Ok(metadata) if metadata.is_directory() => {
                Held::Kept(Rc::new(OpenFile::described(*metadata)))
            }
            Err(error) if rules.keep_errors => Held::Failed(recalled(error)),
            Ok(_) | Err(_) => return result,
        };
        match known {
            Some(key) => {
                self.replace(key, held);
                self.entries[key].checked_ms = now_ms;
                self.entries[key].symlinks = rules.symlinks;
            }
            None => {
                self.insert(path, held, rules, now_ms);
            }
        }
        self.expire(now_ms);
        self.check_invariants();
        result
    }

    /// The content of an entry, if it is still valid.
    fn recall(
        &mut self,
        key: usize,
        rules: &CacheRules,
        now_ms: u64,
    ) -> Option<Result<Metadata, FileError>> {
        self.recency.touch(key);
        let entry = &mut self.entries[key];
        entry.used_ms = now_ms;
        let is_fresh = now_ms.saturating_sub(entry.checked_ms) < rules.valid_ms
            && entry.symlinks == rules.symlinks;
        if !is_fresh {
            return None;
        }
        match &entry.held {
            Held::Failed(error) => Some(Err(*error)),
            Held::Kept(file) => Some(Ok(file.metadata)),
            Held::Lent(file) => file.upgrade().map(|file| Ok(file.metadata)),
        }
    }

    /// Whether `path` is cached; this does not count as a use.
    pub fn contains(&self, path: &[u8]) -> bool {
        self.index.contains_key(path)
    }

    /// The number of cached paths, open or not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of content in memory.
    pub fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    fn open_known(
        &mut self,
        key: usize,
        rules: &CacheRules,
        now_ms: u64,
    ) -> Result<Rc<OpenFile>, FileError> {
        self.recency.touch(key);
        let entry = &mut self.entries[key];
        entry.uses = entry.uses.saturating_add(1);
        entry.used_ms = now_ms;
        let is_fresh = now_ms.saturating_sub(entry.checked_ms) < rules.valid_ms
            && entry.symlinks == rules.symlinks;
        let known = match &entry.held {
            Held::Failed(error) if is_fresh => return Err(*error),
            Held::Failed(_) => None,
            Held::Kept(file) if is_fresh => return Ok(Rc::clone(file)),
            Held::Kept(file) => Some(Rc::clone(file)),
            Held::Lent(file) => file.upgrade(),
        };
        let result = match known {
            Some(file) if is_fresh => {
                self.hold(key, &file, rules);
                return Ok(file);
            }
            Some(file) => open_again(&self.entries[key].path, file, rules.symlinks),
            None => open(&self.entries[key].path, rules.symlinks).map(Rc::new),
        };
        self.entries[key].checked_ms = now_ms;
        self.entries[key].symlinks = rules.symlinks;
        match &result {
            Ok(file) => self.hold(key, file, rules),
            Err(error) if rules.keep_errors => self.replace(key, Held::Failed(recalled(error))),
            Err(_) => self.remove(key),
        }
        result
    }

    fn open_unknown(
        &mut self,
        path: &[u8],
        rules: &CacheRules,
        now_ms: u64,
    ) -> Result<Rc<OpenFile>, FileError> {
        let result = open(path, rules.symlinks).map(Rc::new);
        let held = match &result {
            Ok(file) => Held::Lent(Rc::downgrade(file)),
            Err(error) if rules.keep_errors => Held::Failed(recalled(error)),
            Err(error) => return Err(*error),
        };
        let key = self.insert(path, held, rules, now_ms);
        if let Ok(file) = &result {
            self.hold(key, file, rules);
        }
        result
    }

    fn insert(&mut self, path: &[u8], held: Held, rules: &CacheRules, now_ms: u64) -> usize {
        if self.entries.len() >= self.entries_max
            && let Some(oldest) = self.recency.oldest()
        {
            self.remove(oldest);
        }
        let path: Rc<[u8]> = path.into();
        let key = self.entries.insert(CachedFile {
            path: Rc::clone(&path),
            held,
            symlinks: rules.symlinks,
            uses: 1,
            checked_ms: now_ms,
            used_ms: now_ms,
        });
        self.index.insert(path, key);
        self.recency.insert(key);
        key
    }

    /// Keeps or shares `file`, by the number of uses of its entry.
    fn hold(&mut self, key: usize, file: &Rc<OpenFile>, rules: &CacheRules) {
        let is_same = matches!(&self.entries[key].held, Held::Kept(kept) if Rc::ptr_eq(kept, file));
        if is_same {
            return;
        }
        if self.entries[key].uses < rules.uses_min && !file.metadata.is_directory() {
            self.replace(key, Held::Lent(Rc::downgrade(file)));
            return;
        }
        self.replace(key, Held::Kept(Rc::clone(file)));
        let room = CONTENT_TOTAL_BYTES_MAX.saturating_sub(self.content_bytes);
        load_content(file, CONTENT_BYTES_MAX.min(room as u64));
        self.content_bytes += content_length(&self.entries[key].held);
    }

    fn replace(&mut self, key: usize, held: Held) {
        self.content_bytes -= content_length(&self.entries[key].held);
        self.entries[key].held = held;
    }

    fn remove(&mut self, key: usize) {
        self.recency.remove(key);
        let entry = self.entries.remove(key);
        self.content_bytes -= content_length(&entry.held);
        self.index.remove(&entry.path);
    }

    fn expire(&mut self, now_ms: u64) {
        for _ in 0..EXPIRED_PER_CALL_MAX {
            let Some(oldest) = self.recency.oldest() else {
                return;
            };
            if now_ms.saturating_sub(self.entries[oldest].used_ms) <= self.inactive_ms {
                return;
            }
            self.remove(oldest);
        }
    }

    #[cfg(not(test))]
    fn check_invariants(&self) {}

    /// Checks that the index, the slab and the list hold the same entries, and that the sum of
    /// content is right.
    #[cfg(test)]
    fn check_invariants(&self) {
        let (mut count, mut bytes) = (0, 0);
        for key in self.recency.iter() {
            let entry = &self.entries[key];
            assert_eq!(self.index.get(&entry.path), Some(&key));
            bytes += content_length(&entry.held);
            count += 1;
        }
        assert_eq!(count, self.entries.len());
        assert_eq!((self.index.len(), bytes), (count, self.content_bytes));
        assert!(count <= self.entries_max);
    }
}

/// Checks whether `path` still leads to `file`, and opens it again if not.
///
/// nginx compares only the inode. We keep content and the parts of an entity tag too, so size and
/// times are also compared.
fn open_again(
    path: &[u8],
    file: Rc<OpenFile>,
    symlinks: Symlinks,
) -> Result<Rc<OpenFile>, FileError> {
    let metadata = inspect(path, symlinks)?;
    if metadata == file.metadata {
        return Ok(file);
    }
    if metadata.is_directory() {
        return Ok(Rc::new(OpenFile::described(metadata)));
    }
    open(path, symlinks).map(Rc::new)
}

/// A cached failure is reported as one of opening, whatever call found it.
fn recalled(error: &FileError) -> FileError {
    let operation = match error.operation {
        Operation::OpenAt => Operation::OpenAt,
        _ => Operation::Open,
    };
    FileError {
        operation,
        errno: error.errno,
    }
}

/// Reads a regular file of at most `bytes_max` into memory, unless it changes during the read, or a
/// disk would have to be waited for.
pub(super) fn load_content(file: &OpenFile, bytes_max: u64) {
    let size = file.metadata.size_bytes;
    let Some(descriptor) = &file.descriptor else {
        return;
    };
    if !file.metadata.is_file() || size > bytes_max {
        return;
    }
    if file.content.get().is_some() {
        return;
    }
    // The buffer has one more byte, to detect a file that has grown.
    let mut content = vec![0; size as usize + 1];
    let filled = match fill_at_once(descriptor.as_fd(), &mut content) {
        // As a file system that cannot say is read for everything else.
        Err(error) if disk::is_unsupported(&error) => {
            file::fill_at(descriptor.as_fd(), &mut content, 0)
        }
        filled => filled,
    };
    if !filled.is_ok_and(|filled| filled as u64 == size) {
        return;
    }
    content.truncate(size as usize);
    let _ = file.content.set(content.into_boxed_slice());
}

/// Reads a file until `buffer` is full or the file ends. `WouldBlock`: not all of it is in memory.
fn fill_at_once(file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file::read_cached_at(file, &mut buffer[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn content_length(held: &Held) -> usize {
    match held {
        Held::Kept(file) => file.content().map_or(0, <[u8]>::len),
        Held::Lent(_) | Held::Failed(_) => 0,
    }
}
