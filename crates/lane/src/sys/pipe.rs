//! Pipes that pass bytes from one socket to another inside the kernel (pipe(7), splice(2)).

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

#[cfg(feature = "simulation")]
use super::simulation;
use super::{check, check_size, retry};

/// A pipe of one owner, who fills and drains it. It never blocks.
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Errors
    /// The error of pipe2(2): too many descriptors, or too many pages in pipes of the user.
    pub fn new() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the pointer points to two ints.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
        // SAFETY: the kernel has just returned both descriptors, and nothing else owns them.
        let [reader, writer] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok(Self { reader, writer })
    }

    /// Asks for room for so many bytes (`F_SETPIPE_SZ`, Linux 2.6.35). A kernel that gives less, as
    /// to a user with many pipes, is no failure: less is moved at a time.
    pub fn ask_for_room(&self, bytes: i32) {
        // SAFETY: the descriptor is the pipe's own, and no memory is involved.
        unsafe { libc::fcntl(self.writer.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
    }

    /// Moves up to `bytes_max` from a socket into the pipe; returns their number. 0 is the end of
    /// the stream.
    ///
    /// # Errors
    /// The error of splice(2) (Linux 2.6.17); `WouldBlock` if the socket has nothing or the pipe is
    /// full, `InvalidInput` if the socket cannot be spliced.
    pub fn fill(&self, socket: BorrowedFd<'_>, bytes_max: usize) -> io::Result<usize> {
        let result = splice(socket.as_raw_fd(), self.writer.as_raw_fd(), bytes_max);
        #[cfg(feature = "simulation")]
        let result = simulation::received(socket, result, false);
        result
    }

    /// Moves up to `bytes_max`, which the pipe holds, into a socket; returns their number.
    ///
    /// # Errors
    /// The error of splice(2); `WouldBlock` if the socket is full.
    pub fn drain(&self, socket: BorrowedFd<'_>, bytes_max: usize) -> io::Result<usize> {
        #[cfg(feature = "simulation")]
        let bytes_max = simulation::may_send(socket, bytes_max)?;
        let result = splice(self.reader.as_raw_fd(), socket.as_raw_fd(), bytes_max);
        #[cfg(feature = "simulation")]
        let result = simulation::sent(socket, result);
        result
    }
}

fn splice(from: i32, to: i32, bytes_max: usize) -> io::Result<usize> {
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK;
    let here = std::ptr::null_mut();
    retry(|| {
        // SAFETY: no memory of ours is involved; both positions are the descriptors' own.
        check_size(unsafe { libc::splice(from, here, to, here, bytes_max, flags) })
    })
}
