//! Sockets that a lane's epoll instance watches for somebody else than the parked
//! connections, such as the servers that answer for them.
//!
//! A watched socket is registered once and stays until its socket is closed, however many requests
//! it carries. While a parked connection waits for it, that one's token is noted with it, and what
//! comes is told to the handler of that token. Nothing is lost where nobody waits: who uses a
//! watched socket reads first and waits only when nothing is there.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use slab::Slab;

use super::TOKEN_WATCHED_SOCKET;
use crate::sys::epoll::{Epoll, Interest};

/// The watched sockets of a lane.
#[derive(Clone)]
pub struct WatchedSockets {
    shared: Rc<Shared>,
}

struct Shared {
    epoll: Rc<Epoll>,
    registrations: RefCell<Slab<Registration>>,
    /// Turns of the event loop so far.
    turns: Rc<Cell<u64>>,
}

#[derive(Clone, Copy, Default)]
struct Registration {
    /// Token of the parked connection that waits.
    waiter: Option<u32>,
    /// Whether the other end has sent its last.
    closed: bool,
    /// Whether something came while nobody waited.
    spoken: bool,
    /// The turn in which the place was taken.
    since: u64,
}

/// A socket's place among the watched sockets; given up when dropped. The socket must be closed
/// with it.
pub struct WatchedSocket {
    shared: Rc<Shared>,
    registration: usize,
}

impl WatchedSockets {
    pub(super) fn new(epoll: Rc<Epoll>, turns: Rc<Cell<u64>>) -> Self {
        Self {
            shared: Rc::new(Shared {
                epoll,
                registrations: RefCell::default(),
                turns,
            }),
        }
    }

    /// Watches a socket from now on, for what can be read of it.
    ///
    /// # Errors
    /// What epoll_ctl(2) says.
    pub fn admit(&self, socket: BorrowedFd<'_>) -> io::Result<WatchedSocket> {
        let since = self.shared.turns.get();
        let registration = self.shared.registrations.borrow_mut().insert(Registration {
            since,
            ..Registration::default()
        });
        let watched_socket = WatchedSocket {
            shared: self.shared.clone(),
            registration,
        };
        let interest = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
        self.shared
            .epoll
            .add(socket, interest, TOKEN_WATCHED_SOCKET + registration as u64)?;
        Ok(watched_socket)
    }

    /// How many there are.
    #[cfg(feature = "simulation")]
    pub(super) fn len(&self) -> usize {
        self.shared.registrations.borrow().len()
    }

    /// Takes down an event; says who waited for it. Nobody did where it is of the socket that had
    /// the place until this turn.
    pub(super) fn event(&self, registration: usize, closed: bool) -> Option<u32> {
        let mut registrations = self.shared.registrations.borrow_mut();
        let registration = registrations.get_mut(registration)?;
        if registration.since == self.shared.turns.get() {
            return None;
        }
        registration.closed |= closed;
        registration.spoken |= registration.waiter.is_none();
        registration.waiter
    }
}

impl WatchedSocket {
    /// From now on, what comes is told to the handler of that token.
    pub fn awaited_by(&self, token: u32) {
        self.change(|registration| registration.waiter = Some(token));
    }

    /// Nobody waits any more.
    pub fn leave(&self) {
        self.change(|registration| registration.waiter = None);
    }

    /// Whether the other end was seen to send its last.
    pub fn is_closed(&self) -> bool {
        let registrations = self.shared.registrations.borrow();
        registrations
            .get(self.registration)
            .is_none_or(|registration| registration.closed)
    }

    /// Whether something came while nobody waited, since this was asked last. It may have been
    /// read already: only the socket knows.
    pub fn take_spoken(&self) -> bool {
        let mut spoken = true;
        self.change(|registration| spoken = std::mem::take(&mut registration.spoken));
        spoken
    }

    fn change(&self, change: impl FnOnce(&mut Registration)) {
        if let Some(registration) = self
            .shared
            .registrations
            .borrow_mut()
            .get_mut(self.registration)
        {
            change(registration);
        }
    }
}

impl Drop for WatchedSocket {
    fn drop(&mut self) {
        self.shared
            .registrations
            .borrow_mut()
            .try_remove(self.registration);
    }
}
