//! Changes of files, as the kernel tells them: inotify(7).

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use super::{check, check_size, with_c_path};

/// What is told of a watched file: it is written, its attributes or links change, it is moved or
/// removed.
const MASK: u32 = libc::IN_MODIFY
    | libc::IN_CLOSE_WRITE
    | libc::IN_ATTRIB
    | libc::IN_MOVE_SELF
    | libc::IN_DELETE_SELF;

/// What is told of a folder or a link that a path leads through: it is moved or removed.
const WAY_MASK: u32 =
    libc::IN_ATTRIB | libc::IN_MOVE_SELF | libc::IN_DELETE_SELF | libc::IN_DONT_FOLLOW;

/// Bytes of `struct inotify_event` before the name, which only an event in a folder has.
const EVENT_BYTES: usize = size_of::<libc::inotify_event>();

/// Bytes that one read takes: many events, on the stack.
const READ_BYTES: usize = 4096;

/// A queue of changes of the files that are watched.
#[derive(Debug)]
pub struct ChangeQueue(OwnedFd);

/// A watched file: its number in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Watch(i32);

/// What a queue tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file has changed, or may have.
    File(Watch),
    /// The file is watched no more: it is gone, or the watch was taken away.
    Unwatched(Watch),
    /// The queue was full, and what has changed is not known.
    Overflow,
}

impl ChangeQueue {
    /// An empty queue.
    ///
    /// # Errors
    /// Those of inotify_init1(2): `EMFILE` where the user has no more of them
    /// (`fs.inotify.max_user_instances`).
    pub fn new() -> io::Result<ChangeQueue> {
        // SAFETY: inotify_init1 takes flags only.
        let number = check(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        // SAFETY: the descriptor was made here, and has no other owner.
        Ok(ChangeQueue(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// Watches the file at a path; of one that is watched already, the same watch.
    ///
    /// # Errors
    /// Those of inotify_add_watch(2): `ENOSPC` where the user has no more of them
    /// (`fs.inotify.max_user_watches`).
    pub fn watch(&self, path: &[u8]) -> io::Result<Watch> {
        self.add(path, MASK)
    }

    /// Watches the folder or the symbolic link itself at a path, and not what is in it: it is told
    /// when another one takes its place.
    ///
    /// # Errors
    /// As for [`ChangeQueue::watch`].
    pub fn watch_way(&self, path: &[u8]) -> io::Result<Watch> {
        self.add(path, WAY_MASK)
    }

    fn add(&self, path: &[u8], mask: u32) -> io::Result<Watch> {
        with_c_path(path, |path| {
            // SAFETY: the path is a string that ends with a zero byte, and is only read.
            let number =
                unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), path.as_ptr(), mask) };
            check(number).map(Watch)
        })
    }

    /// Watches a file no more; it is told once that it is so.
    ///
    /// # Errors
    /// Those of inotify_rm_watch(2): `EINVAL` where it is not watched.
    pub fn unwatch(&self, watch: Watch) -> io::Result<()> {
        // SAFETY: inotify_rm_watch takes numbers only.
        check(unsafe { libc::inotify_rm_watch(self.0.as_raw_fd(), watch.0) }).map(|_| ())
    }

    /// Takes what is in the queue, as much as one read gives; returns whether there was anything.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn take(&self, mut change: impl FnMut(Change)) -> io::Result<bool> {
        let mut buffer = [0_u8; READ_BYTES];
        // SAFETY: the buffer is ours, and as long as is said.
        let count =
            unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let count = match check_size(count) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            count => count?,
        };
        let mut rest = &buffer[..count];
        while let Some((event, behind)) = rest.split_at_checked(EVENT_BYTES) {
            let (watch, mask) = (number_at(event, 0) as i32, number_at(event, 4));
            let name_bytes = number_at(event, 12) as usize;
            rest = behind.get(name_bytes..).unwrap_or_default();
            if name_bytes > 0 {
                // Of what is in a folder: the folder itself is as it was.
                continue;
            }
            change(match mask {
                mask if mask & libc::IN_Q_OVERFLOW != 0 => Change::Overflow,
                mask if mask & libc::IN_IGNORED != 0 => Change::Unwatched(Watch(watch)),
                _ => Change::File(Watch(watch)),
            });
        }
        Ok(true)
    }

    /// A copy of the descriptor, which is readable when there is something in the queue.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn readable(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

fn number_at(event: &[u8], at: usize) -> u32 {
    let bytes = event
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok());
    u32::from_ne_bytes(bytes.unwrap_or_default())
}
