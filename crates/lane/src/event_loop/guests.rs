//! Guests: sockets that a lane's epoll instance watches for somebody else than the parked
//! connections, such as the servers that answer for them.
//!
//! A guest is registered once and stays until its socket is closed, however many requests it
//! carries. While a parked connection waits for it, that one's token is noted with it, and what
//! comes is told to the handler of that token. Nothing is lost where nobody waits: who uses a
//! guest reads first and waits only when nothing is there.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use slab::Slab;

use super::TOKEN_GUEST;
use crate::sys::epoll::{Epoll, Interest};

/// The guests of a lane.
#[derive(Clone)]
pub struct Guests {
    shared: Rc<Shared>,
}

struct Shared {
    epoll: Rc<Epoll>,
    places: RefCell<Slab<Place>>,
    /// Turns of the event loop so far.
    turns: Rc<Cell<u64>>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    /// Token of the parked connection that waits.
    waiter: Option<u32>,
    /// Whether the other end has sent its last.
    closed: bool,
    /// Whether something came while nobody waited.
    spoken: bool,
    /// The turn in which the place was taken.
    since: u64,
}

/// A socket's place among the guests; given up when dropped. The socket must be closed with it.
pub struct Guest {
    shared: Rc<Shared>,
    place: usize,
}

impl Guests {
    pub(super) fn new(epoll: Rc<Epoll>, turns: Rc<Cell<u64>>) -> Self {
        Self {
            shared: Rc::new(Shared {
                epoll,
                places: RefCell::default(),
                turns,
            }),
        }
    }

    /// Watches a socket from now on, for what can be read of it.
    ///
    /// # Errors
    /// What epoll_ctl(2) says.
    pub fn admit(&self, socket: BorrowedFd<'_>) -> io::Result<Guest> {
        let since = self.shared.turns.get();
        let place = self.shared.places.borrow_mut().insert(Place {
            since,
            ..Place::default()
        });
        let guest = Guest {
            shared: self.shared.clone(),
            place,
        };
        let interest = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
        self.shared
            .epoll
            .add(socket, interest, TOKEN_GUEST + place as u64)?;
        Ok(guest)
    }

    /// Takes down an event; says who waited for it. Nobody did where it is of the socket that had
    /// the place until this turn.
    pub(super) fn event(&self, place: usize, closed: bool) -> Option<u32> {
        let mut places = self.shared.places.borrow_mut();
        let place = places.get_mut(place)?;
        if place.since == self.shared.turns.get() {
            return None;
        }
        place.closed |= closed;
        place.spoken |= place.waiter.is_none();
        place.waiter
    }
}

impl Guest {
    /// From now on, what comes is told to the handler of that token.
    pub fn awaited_by(&self, token: u32) {
        self.change(|place| place.waiter = Some(token));
    }

    /// Nobody waits any more.
    pub fn leave(&self) {
        self.change(|place| place.waiter = None);
    }

    /// Whether the other end was seen to send its last.
    pub fn is_closed(&self) -> bool {
        let places = self.shared.places.borrow();
        places.get(self.place).is_none_or(|place| place.closed)
    }

    /// Whether something came while nobody waited, since this was asked last. It may have been
    /// read already: only the socket knows.
    pub fn take_spoken(&self) -> bool {
        let mut spoken = true;
        self.change(|place| spoken = std::mem::take(&mut place.spoken));
        spoken
    }

    fn change(&self, change: impl FnOnce(&mut Place)) {
        if let Some(place) = self.shared.places.borrow_mut().get_mut(self.place) {
            change(place);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.places.borrow_mut().try_remove(self.place);
    }
}
