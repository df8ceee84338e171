//! Reads of files that must not make a lane wait: what is in memory is read at once, and the rest
//! by threads that wait for the disk.
//!
//! A file that is served is never mapped: a page that is not in memory would stop the lane, and
//! one that is cut off while it is read would end the process (SIGBUS).

use std::io;
use std::mem;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use crate::pool::{PoolLimits, PoolRefusal, WorkerPool};
use crate::sys::file;

/// Threads that wait for disks, since one request at a time would not use what a disk can do at
/// once, and the reads that wait for them. A read that finds no place waits, so that none fails for
/// being one of many: at 64 KB a read, this queue is 64 MB of work.
const LIMITS: PoolLimits = PoolLimits {
    name: "file reader",
    threads_max: 16,
    queued_max: 1024,
};

static READERS: WorkerPool = WorkerPool::new(LIMITS);

/// How long a read waits before it asks again for a place in the queue.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Reads at `offset` what is in memory. `None`: the disk must be waited for, or the file system
/// cannot say; [`read_on_thread`] reads then.
///
/// # Errors
/// The kernel's error.
pub fn read_at_once(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
) -> io::Result<Option<usize>> {
    match file::read_cached_at(file, buffer, offset) {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if !is_unsupported(&error) => Err(error),
        // Some kernels do not know that these files are always in memory.
        Err(_) if file::is_in_memory(file)? => file::read_at(file, buffer, offset).map(Some),
        Err(_) => Ok(None),
    }
}

/// Reads up to `bytes_max` at `offset` into `buffer`, whose content is replaced, without making
/// this thread wait. Returns the number of bytes; 0 is the end.
///
/// # Errors
/// The kernel's error.
pub async fn read_on_thread(
    file: BorrowedFd<'_>,
    buffer: &mut Vec<u8>,
    bytes_max: usize,
    offset: u64,
) -> io::Result<usize> {
    loop {
        // The read outlives a request that is given up, and then the file must stay open.
        let file = file.try_clone_to_owned()?;
        let mut room = mem::take(buffer);
        let read = move || {
            room.resize(bytes_max, 0);
            let read = file::fill_at(file.as_fd(), &mut room, offset);
            (room, read)
        };
        match READERS.submit(read) {
            Ok(result) => {
                let lost = || io::Error::other("the thread is gone");
                let (room, read) = result.await.ok_or_else(lost)?;
                *buffer = room;
                let count = read?;
                buffer.truncate(count);
                return Ok(count);
            }
            Err(PoolRefusal::Full) => tokio::time::sleep(FULL_PAUSE).await,
            Err(PoolRefusal::NoThread(error)) => return Err(error),
        }
    }
}

/// Whether the kernel or the file system has no reads of what is in memory.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)
    )
}

#[cfg(test)]
mod tests {
    //! Reads of a file that is in memory, or is said not to be.

    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::{read_at_once, read_on_thread};
    use crate::sys::file::fake_disk;

    fn file(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("lane-disk-{name}-{}", std::process::id()));
        std::fs::write(&path, "content").unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    #[test]
    fn only_what_is_in_memory_is_read_at_once() {
        let file = file("once");
        let is_in_memory = crate::sys::file::is_in_memory(file.as_fd()).unwrap();
        let always = if is_in_memory { Some(4) } else { None };
        for (errno, expected) in [
            (None, Some(4)),
            (Some(libc::EAGAIN), None),
            (Some(libc::EOPNOTSUPP), always),
        ] {
            let mut buffer = [0; 4];
            fake_disk::refuse(errno);
            let read = read_at_once(file.as_fd(), &mut buffer, 1).unwrap();
            assert_eq!(fake_disk::refuse(None), usize::from(errno.is_some()));
            assert_eq!(read, expected, "{errno:?}");
            assert_eq!(&buffer == b"onte", expected.is_some());
        }
        fake_disk::refuse(Some(libc::EIO));
        let failed = read_at_once(file.as_fd(), &mut [0; 4], 0).unwrap_err();
        fake_disk::refuse(None);
        assert_eq!(failed.raw_os_error(), Some(libc::EIO));
    }

    #[test]
    fn a_thread_reads_the_rest() {
        let file = file("thread");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut buffer = b"before".to_vec();
        for (offset, bytes_max, expected) in [(0, 3, "con"), (3, 100, "tent"), (7, 100, "")] {
            let read = read_on_thread(file.as_fd(), &mut buffer, bytes_max, offset);
            assert_eq!(runtime.block_on(read).unwrap(), expected.len());
            assert_eq!(buffer, expected.as_bytes());
        }
        let folder = File::open("/").unwrap();
        let read = read_on_thread(folder.as_fd(), &mut buffer, 1, 0);
        assert!(runtime.block_on(read).is_err());
    }
}
