//! Memory shared with the kernel or another process (mmap(2)), as words with several writers.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use super::check;

/// Most words of one mapping: 8 MiB, far more than lanes need; it catches wrong arguments.
pub const WORDS_MAX: usize = 1 << 20;

/// Seals of memory whose size never changes.
const FIXED_SIZE: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A shared mapping of 64-bit words: a BPF array, a memfd. Unmapped when dropped.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the words are atomics, reached only by shared reference, and the mapping is not tied to
// the thread that made it.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps `count` words of `source`, readable and writable, from its start.
    ///
    /// The source must not be shortened while it is mapped (a BPF array cannot be).
    pub fn map(source: BorrowedFd<'_>, count: usize) -> io::Result<SharedWords> {
        Self::map_raw(source.as_raw_fd(), libc::MAP_SHARED, count)
    }

    /// Maps `count` zeroed words that a forked child shares with us.
    pub fn anonymous(count: usize) -> io::Result<SharedWords> {
        Self::map_raw(-1, libc::MAP_SHARED | libc::MAP_ANONYMOUS, count)
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `count` words, is page-aligned, and lives as long as `self`;
        // all writers write whole words.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }

    /// Makes memory of `count` zeroed words that processes share by passing its descriptor on: a
    /// memfd_create(2) of a fixed size, close-on-exec.
    pub fn create(count: usize) -> io::Result<OwnedFd> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string that ends with a zero byte.
        let number = check(unsafe { libc::memfd_create(c"turnpike".as_ptr(), flags) })?;
        // SAFETY: the descriptor was made here, and has no other owner.
        let memory = unsafe { OwnedFd::from_raw_fd(number) };
        let bytes = libc::off_t::try_from(count * 8).map_err(io::Error::other)?;
        // SAFETY: ftruncate takes a descriptor and a length.
        check(unsafe { libc::ftruncate(number, bytes) })?;
        // SAFETY: F_ADD_SEALS takes an int.
        check(unsafe { libc::fcntl(number, libc::F_ADD_SEALS, FIXED_SIZE) })?;
        Ok(memory)
    }

    /// Whether a descriptor is memory that [`SharedWords::create`] has made, of so many words.
    pub fn is_memory(memory: BorrowedFd<'_>, count: usize) -> bool {
        // SAFETY: F_GET_SEALS takes no argument, and fails for other kinds of files.
        let seals = unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_GET_SEALS) };
        let bytes = memory.try_clone_to_owned().and_then(|memory| {
            let metadata = std::fs::File::from(memory).metadata();
            metadata.map(|metadata| metadata.len())
        });
        seals >= 0
            && seals & FIXED_SIZE == FIXED_SIZE
            && bytes.is_ok_and(|bytes| bytes == count as u64 * 8)
    }

    fn map_raw(source: i32, flags: libc::c_int, count: usize) -> io::Result<SharedWords> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let start = map(source, access, flags, count, 0)?;
        Ok(SharedWords { start, count })
    }
}

/// Maps so many words of a source from a byte on.
fn map(
    source: i32,
    access: libc::c_int,
    flags: libc::c_int,
    count: usize,
    from_byte: usize,
) -> io::Result<NonNull<AtomicU64>> {
    if count == 0 || count > WORDS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let from_byte = libc::off_t::try_from(from_byte).map_err(io::Error::other)?;
    let anywhere = std::ptr::null_mut();
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(anywhere, count * 8, access, flags, source, from_byte) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))
}

/// A shared mapping of 64-bit words that others write: what a BPF ring buffer has. Unmapped when
/// dropped.
#[derive(Debug)]
pub struct WrittenWords {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: as for `SharedWords`.
unsafe impl Send for WrittenWords {}
// SAFETY: as above.
unsafe impl Sync for WrittenWords {}

impl WrittenWords {
    /// Maps `count` words of `source`, to be read only, from a byte on, where a page begins.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn map(source: BorrowedFd<'_>, count: usize, from_byte: usize) -> io::Result<WrittenWords> {
        let number = source.as_raw_fd();
        let start = map(number, libc::PROT_READ, libc::MAP_SHARED, count, from_byte)?;
        Ok(WrittenWords { start, count })
    }

    /// The word at an index; 0 behind the end. What its writer wrote before it is seen too.
    pub fn word(&self, index: usize) -> u64 {
        // SAFETY: the mapping holds `count` words, is page-aligned, and lives as long as `self`;
        // they are only loaded, and all writers write whole words.
        let words = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) };
        words
            .get(index)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }
}

impl Drop for WrittenWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * 8) };
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * 8) };
    }
}
