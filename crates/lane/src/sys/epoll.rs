//! The readiness queue of a lane (epoll(7)).
//!
//! The caller may use it level- or edge-triggered. This file keeps no list of registrations, since
//! the kernel removes a descriptor when its last copy is closed.

use std::{
    io,
    ops::BitOr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use super::check;
#[cfg(feature = "simulation")]
use super::simulation;

/// Most events that one [`Epoll::wait`] may return: with more, the lane's timers would wait for too
/// long. nginx's `epoll_events` default is 512.
pub const EVENTS_MAX: usize = 4096;

/// The events of a registration; combined with `
/// `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

impl Interest {
    /// Only errors and hang-ups, which epoll always reports.
    pub const NONE: Interest = Interest(0);
    /// Bytes or a connection to read, or the end of the stream.
    pub const READ: Interest = Interest(libc::EPOLLIN as u32);
    /// Space in the send buffer, or a connect that has finished.
    pub const WRITE: Interest = Interest(libc::EPOLLOUT as u32);
    /// The peer has shut down its sending side.
    pub const PEER_CLOSED: Interest = Interest(libc::EPOLLRDHUP as u32);
    /// Report changes, not states.
    pub const EDGE: Interest = Interest(libc::EPOLLET as u32);
    /// Wake one of the waiters, not all of them. Only with [`Epoll::add`], and it cannot be
    /// modified afterwards (Linux 4.5).
    pub const EXCLUSIVE: Interest = Interest(libc::EPOLLEXCLUSIVE as u32);
}

impl BitOr for Interest {
    type Output = Interest;

    fn bitor(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }
}

/// An event of a registered descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token given at registration.
    pub token: u64,
    bits: u32,
}

impl Event {
    /// A read would not block: bytes, a connection, an end or an error is there.
    pub fn is_readable(&self) -> bool {
        self.has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// A write would not block: there is space, a connect has finished, or there is an error.
    pub fn is_writable(&self) -> bool {
        self.has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// The peer will send no more.
    pub fn is_peer_closed(&self) -> bool {
        self.has(libc::EPOLLRDHUP | libc::EPOLLHUP)
    }

    /// Both directions are closed.
    pub fn is_hang_up(&self) -> bool {
        self.has(libc::EPOLLHUP)
    }

    /// The socket holds an error (`SO_ERROR`).
    pub fn is_error(&self) -> bool {
        self.has(libc::EPOLLERR)
    }

    fn has(&self, bits: libc::c_int) -> bool {
        self.bits & bits as u32 != 0
    }
}

/// The memory for the events of one wait; it is made once per lane, so that waiting does not
/// allocate.
pub struct EventBuffer {
    events: Vec<libc::epoll_event>,
    filled: usize,
}

impl EventBuffer {
    /// Allocates memory for `capacity` events, at most [`EVENTS_MAX`]. With 0 it allocates nothing:
    /// a wait on such a placeholder is `EINVAL`.
    pub fn with_capacity(capacity: usize) -> EventBuffer {
        let empty = libc::epoll_event { events: 0, u64: 0 };
        EventBuffer {
            events: vec![empty; capacity.min(EVENTS_MAX)],
            filled: 0,
        }
    }

    /// The number of events of the last wait.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether the last wait gave no event.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The event at `index` of the last wait. Unlike [`EventBuffer::iter`], it allows a loop to
    /// change its lane.
    pub fn at(&self, index: usize) -> Option<Event> {
        let event = self.events[..self.filled].get(index)?;
        Some(Event {
            token: event.u64,
            bits: event.events,
        })
    }

    /// The events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.events[..self.filled].iter().map(|event| Event {
            token: event.u64,
            bits: event.events,
        })
    }
}

/// One epoll instance.
#[derive(Debug)]
pub struct Epoll {
    descriptor: OwnedFd,
}

impl Epoll {
    /// Makes an instance, close-on-exec.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: epoll_create1 takes no pointers.
        let descriptor = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Epoll { descriptor })
    }

    /// Registers `descriptor`; its events carry `token`. `EEXIST` if it is registered.
    pub fn add(
        &self,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, interest, token)
    }

    /// Changes interest and token of a registered descriptor. `ENOENT` if it is not registered.
    pub fn modify(
        &self,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, interest, token)
    }

    /// Removes `descriptor`. Not needed before closing its only copy.
    pub fn delete(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor, Interest::NONE, 0)
    }

    /// Waits for an event or until `timeout_ms` has passed (0: do not wait, -1: no limit).
    ///
    /// A signal ends the wait like a timeout, with `Ok(0)`, and the caller checks its clock again.
    pub fn wait(&self, buffer: &mut EventBuffer, timeout_ms: i32) -> io::Result<usize> {
        #[cfg(feature = "simulation")]
        if simulation::is_on() {
            return self.simulated_wait(buffer, timeout_ms);
        }
        self.kernel_wait(buffer, timeout_ms)
    }

    /// Lets the simulated peers act until there is an event or the time is over.
    #[cfg(feature = "simulation")]
    fn simulated_wait(&self, buffer: &mut EventBuffer, timeout_ms: i32) -> io::Result<usize> {
        use simulation::with_world;
        let mut left_ms = u64::try_from(timeout_ms).unwrap_or(u64::MAX);
        loop {
            let acted = with_world(Ok(false), |world| world.act())?;
            self.kernel_wait(buffer, 0)?;
            let room = buffer.filled < buffer.events.len();
            if room && let Some(token) = with_world(None, |world| world.spurious()) {
                buffer.events[buffer.filled] = libc::epoll_event {
                    events: libc::EPOLLIN as u32,
                    u64: token,
                };
                buffer.filled += 1;
            }
            if buffer.filled > 0 || left_ms == 0 {
                return Ok(buffer.filled);
            }
            if !acted {
                left_ms -= with_world(left_ms, |world| world.pass_ms(left_ms));
            }
        }
    }

    pub(super) fn kernel_wait(
        &self,
        buffer: &mut EventBuffer,
        timeout_ms: i32,
    ) -> io::Result<usize> {
        buffer.filled = 0;
        let capacity = buffer.events.len() as libc::c_int;
        // SAFETY: the pointer and the capacity describe the buffer's own initialised vector.
        let count = check(unsafe {
            let events = buffer.events.as_mut_ptr();
            libc::epoll_wait(self.descriptor.as_raw_fd(), events, capacity, timeout_ms)
        });
        match count {
            Ok(count) => {
                buffer.filled = count as usize;
                Ok(buffer.filled)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn control(
        &self,
        operation: libc::c_int,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        #[cfg(feature = "simulation")]
        simulation::with_world((), |world| {
            let token = (operation != libc::EPOLL_CTL_DEL).then_some(token);
            world.registered(descriptor.as_raw_fd(), token);
        });
        self.kernel_control(operation, descriptor, interest, token)
    }

    pub(super) fn kernel_control(
        &self,
        operation: libc::c_int,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.0,
            u64: token,
        };
        // SAFETY: the event lives until the call returns, and the kernel keeps no pointer to it.
        check(unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                operation,
                descriptor.as_raw_fd(),
                &mut event,
            )
        })?;
        Ok(())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.descriptor.as_raw_fd()
    }
}
