//! One client's connection to the master: what has come, what is to be sent, and since when it has
//! been silent. It never waits.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use turnpike_lane::sys::epoll::{Epoll, Interest};
use turnpike_lane::sys::socket::{self, More};

/// Bytes read at a time.
const READ_BYTES: usize = 16 * 1024;

/// A non-blocking stream socket with its buffers.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// What has come and was not taken yet; whoever takes it limits it.
    pub(super) input: Vec<u8>,
    output: Vec<u8>,
    /// The client sends no more.
    pub(super) has_ended: bool,
    active: Instant,
    interest: Interest,
}

impl Connection {
    /// Accepts one and watches it under `token`; `None` when nobody waits.
    ///
    /// # Errors
    /// Those of `epoll_ctl(2)`: that client is closed, and others may wait.
    pub(super) fn accept(
        listener: BorrowedFd<'_>,
        token: u64,
        epoll: &Epoll,
    ) -> io::Result<Option<Connection>> {
        let Ok((socket, _)) = socket::accept(listener) else {
            return Ok(None);
        };
        epoll.add(socket.as_fd(), Interest::READ, token)?;
        Ok(Some(Connection {
            socket,
            input: Vec::new(),
            output: Vec::new(),
            has_ended: false,
            active: Instant::now(),
            interest: Interest::READ,
        }))
    }

    /// Reads once; `false` when the connection is broken.
    pub(super) fn read(&mut self) -> bool {
        if self.has_ended {
            return true;
        }
        match socket::receive_append(self.socket.as_fd(), &mut self.input, READ_BYTES) {
            Ok(0) => self.has_ended = true,
            Ok(_) => self.active = Instant::now(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        true
    }

    /// Sends bytes, after those that were not taken yet.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        self.write();
    }

    /// Sends what the client takes now.
    pub(super) fn write(&mut self) {
        while !self.output.is_empty() {
            match socket::send(self.socket.as_fd(), &self.output, More::No) {
                Ok(count) => {
                    self.active = Instant::now();
                    self.output.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.output.clear();
                    self.has_ended = true;
                }
            }
        }
    }

    /// Says that nothing more comes from this side.
    pub(super) fn end(&self) {
        // It fails only when the client is gone.
        let _ = socket::shutdown(self.socket.as_fd(), Shutdown::Write);
    }

    /// The bytes that wait to be sent.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.len()
    }

    /// When a client that is silent for so long is over.
    pub(super) fn deadline(&self, idle_max: Duration) -> Instant {
        self.active + idle_max
    }

    /// Watches for what is waited for now.
    pub(super) fn watch(&mut self, token: u64, epoll: &Epoll) {
        let interest = match (!self.has_ended, self.output.is_empty()) {
            (true, true) => Interest::READ,
            (true, false) => Interest::READ | Interest::WRITE,
            (false, true) => Interest::NONE,
            (false, false) => Interest::WRITE,
        };
        if interest != self.interest {
            self.interest = interest;
            // It fails only for a descriptor that is not in the queue, and this one is.
            let _ = epoll.modify(self.socket.as_fd(), interest, token);
        }
    }
}
