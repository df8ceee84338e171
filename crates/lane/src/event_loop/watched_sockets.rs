//! Sockets that a lane's epoll instance watches in addition to the parked connections, such as
//! those to upstream servers.
//!
//! A watched socket is registered once and stays until it is closed, for any number of requests.
//! While a parked connection waits for it, its entry holds that connection's token, and its events
//! go to the handler of that token. Without a waiter no event is lost: the user of a watched socket
//! reads first, and waits only if there is no input.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use slab::Slab;

use super::token::Token;
use crate::sys::epoll::{Epoll, Interest};

/// The watched sockets of a lane.
#[derive(Clone)]
pub struct WatchedSockets {
    shared: Rc<Shared>,
}

struct Shared {
    epoll: Rc<Epoll>,
    registrations: RefCell<Slab<Registration>>,
    /// The number of turns of the event loop so far.
    turns: Rc<Cell<u64>>,
}

#[derive(Clone, Copy, Default)]
struct Registration {
    /// The token of the parked connection that waits.
    waiter: Option<u32>,
    /// Whether the peer has shut down its sending side.
    closed: bool,
    /// Whether input came without a waiter.
    spoken: bool,
    /// The turn in which the entry was taken.
    since: u64,
}

/// A socket's entry in the registry; dropping it frees the entry. The socket must be closed with
/// it.
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

    /// Watches a socket for input.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn admit(&self, socket: BorrowedFd<'_>) -> io::Result<WatchedSocket> {
        self.admit_for(socket, Interest::READ)
    }

    /// Watches a socket that is connecting, for the end of that too.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn admit_connecting(&self, socket: BorrowedFd<'_>) -> io::Result<WatchedSocket> {
        self.admit_for(socket, Interest::READ | Interest::WRITE)
    }

    fn admit_for(&self, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<WatchedSocket> {
        let since = self.shared.turns.get();
        let registration = self.shared.registrations.borrow_mut().insert(Registration {
            since,
            ..Registration::default()
        });
        let watched_socket = WatchedSocket {
            shared: self.shared.clone(),
            registration,
        };
        let interest = interest | Interest::PEER_CLOSED | Interest::EDGE;
        let token = Token::Watched(registration as u32).encode();
        self.shared.epoll.add(socket, interest, token)?;
        Ok(watched_socket)
    }

    /// The number of watched sockets.
    #[cfg(feature = "simulation")]
    pub(super) fn len(&self) -> usize {
        self.shared.registrations.borrow().len()
    }

    /// Records an event; returns its waiter. `None` if the event belongs to the socket that had the
    /// entry before this turn.
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
    /// Sends later events to the handler of this token.
    pub fn awaited_by(&self, token: u32) {
        self.change(|registration| registration.waiter = Some(token));
    }

    /// Ends the wait.
    pub fn leave(&self) {
        self.change(|registration| registration.waiter = None);
    }

    /// Whether the peer was seen to shut down its sending side.
    pub fn is_closed(&self) -> bool {
        let registrations = self.shared.registrations.borrow();
        registrations
            .get(self.registration)
            .is_none_or(|registration| registration.closed)
    }

    /// Whether input came without a waiter since the last call. It may have been read already: only
    /// the socket knows.
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
