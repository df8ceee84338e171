//! The clients of one of the master's listening sockets, by the tokens of their events.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use turnpike_lane::sys::epoll::Epoll;

use super::connection::Connection;

/// Clients at a time: people, agents and monitors of one machine. One more is closed at once.
const CLIENTS_MAX: usize = 64;
/// Connections that wait to be accepted.
pub(super) const BACKLOG: i32 = 64;

/// A client of such a socket.
pub(super) trait Client {
    /// One that has just come.
    fn new(connection: Connection) -> Self;

    /// When its time is over; `None`: it waits for the master.
    fn deadline(&self) -> Option<Instant>;
}

/// The clients; they may outlive the socket that they came by.
#[derive(Debug)]
pub(super) struct Clients<C> {
    by_token: HashMap<u64, C>,
    made: u64,
}

impl<C> Default for Clients<C> {
    fn default() -> Self {
        Self {
            by_token: HashMap::new(),
            made: 0,
        }
    }
}

impl<C: Client> Clients<C> {
    /// Accepts those that wait. Their tokens count up from the listening socket's.
    pub(super) fn accept(&mut self, listener: BorrowedFd<'_>, listener_token: u64, epoll: &Epoll) {
        // Bounded by the backlog; the rest is told of again.
        for _ in 0..BACKLOG {
            let token = listener_token + 1 + self.made;
            let connection = match Connection::accept(listener, token, epoll) {
                Ok(Some(connection)) => connection,
                Ok(None) => return,
                Err(_) => continue,
            };
            self.made += 1;
            if self.by_token.len() < CLIENTS_MAX {
                self.by_token.insert(token, C::new(connection));
            }
        }
    }

    pub(super) fn get_mut(&mut self, token: u64) -> Option<&mut C> {
        self.by_token.get_mut(&token)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.by_token.values_mut()
    }

    /// Lets one go: closing its connection takes it out of the event queue.
    pub(super) fn remove(&mut self, token: u64) {
        self.by_token.remove(&token);
    }

    /// When the next client's time is over.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.by_token.values().filter_map(C::deadline).min()
    }

    /// Closes clients whose time is over.
    pub(super) fn close_late(&mut self, now: Instant) {
        self.by_token
            .retain(|_, client| client.deadline().is_none_or(|deadline| deadline > now));
    }
}
