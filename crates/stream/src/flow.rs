//! Flows of UDP: what one client sends to one address of ours, as far as it belongs to one session.
//!
//! Datagrams come by a gate that all flows share. The lane's table finds the flow of each; a
//! datagram of no flow begins one, and a session with it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use turnpike_lane::event_loop::Owner;
use turnpike_lane::flows;
use turnpike_lane::sys::datagram::{self, Route};

/// Datagrams that wait in a flow for their session: more than a client sends before it waits for
/// an answer, where it does.
const DATAGRAMS_MAX: usize = 256;

/// Bytes that wait so: about what a socket's own receive buffer holds by default.
const BYTES_MAX: usize = 256 * 1024;

/// Pause after which a gate that took nothing is tried again: what it holds leaves by then.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// Attempts at a full gate before a datagram is given up, as a network would.
const FULL_ATTEMPTS_MAX: usize = 100;

/// The key of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    /// The address of ours that the client sends to.
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

impl FlowKey {
    /// The same as the lane's directory of flows knows it.
    pub(crate) fn in_directory(self, owner: Owner) -> flows::FlowKey {
        flows::FlowKey::write(owner, |bytes| {
            let mut count = 0;
            let mut add = |part: &[u8]| {
                bytes[count..count + part.len()].copy_from_slice(part);
                count += part.len();
            };
            for address in [self.local, self.peer] {
                match address.ip() {
                    IpAddr::V4(ip) => add(&ip.octets()),
                    IpAddr::V6(ip) => add(&ip.octets()),
                }
                add(&address.port().to_be_bytes());
                if let SocketAddr::V6(address) = address {
                    add(&address.flowinfo().to_be_bytes());
                    add(&address.scope_id().to_be_bytes());
                }
            }
            count
        })
    }
}

/// A key is hashed for every datagram: whole words cost less than the parts of an address one by
/// one.
impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for address in [self.local, self.peer] {
            let port = u64::from(address.port());
            match address.ip() {
                IpAddr::V4(ip) => state.write_u64(u64::from(ip.to_bits()) << 16 | port),
                IpAddr::V6(ip) => {
                    state.write_u128(ip.to_bits());
                    state.write_u64(port);
                }
            }
        }
    }
}

/// The way back to a client.
pub(crate) struct Origin {
    pub(crate) key: FlowKey,
    pub(crate) gate: Arc<OwnedFd>,
    /// Our address, where the gate is bound to all of them.
    pub(crate) source: Option<IpAddr>,
}

/// What one client sends to one session, and the way back.
pub struct Flow {
    pub(crate) origin: Origin,
    /// Datagrams that the session may still be given; 0 is without limit.
    datagrams_left: Cell<u64>,
    waiting: RefCell<Waiting>,
    arrived: Notify,
    /// The place of its session among those that are served in steps.
    place: Cell<Option<usize>>,
    /// The kernel may cut what is sent to the client into datagrams.
    cuts: Cell<bool>,
}

/// Datagrams that no session has taken yet.
#[derive(Default)]
struct Waiting {
    datagrams: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The session takes more.
    More,
    /// The session takes no other: it was the last.
    Last,
}

impl Flow {
    /// A flow whose session has its first datagram; it is given `datagrams_max` in all, 0 is
    /// without limit. `None` where the first was the last.
    pub(crate) fn new(origin: Origin, datagrams_max: u64) -> (Self, Given) {
        let flow = Self {
            origin,
            datagrams_left: Cell::new(datagrams_max),
            waiting: RefCell::default(),
            arrived: Notify::new(),
            place: Cell::new(None),
            cuts: Cell::new(true),
        };
        let (_, given) = flow.count(1);
        (flow, given)
    }

    /// Adds a datagram. One too many is lost, as it would be in a socket.
    pub fn keep(&self, bytes: &[u8]) {
        let mut waiting = self.waiting.borrow_mut();
        let full = waiting.bytes + bytes.len() > BYTES_MAX;
        if waiting.datagrams.len() < DATAGRAMS_MAX && !full {
            waiting.bytes += bytes.len();
            waiting.datagrams.push_back(bytes.to_vec());
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Puts the datagram that was taken last back.
    pub fn keep_first(&self, datagram: Vec<u8>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.bytes += datagram.len();
        waiting.datagrams.push_front(datagram);
    }

    /// The place of its session among those that are served in steps; `None`: a future serves it.
    pub(crate) fn place(&self) -> Option<usize> {
        self.place.get()
    }

    /// Sets that place.
    pub(crate) fn set_place(&self, place: usize) {
        self.place.set(Some(place));
    }

    /// Whether datagrams wait.
    pub fn has_kept(&self) -> bool {
        !self.waiting.borrow().datagrams.is_empty()
    }

    /// Takes the next datagram, if one waits.
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut waiting = self.waiting.borrow_mut();
        let datagram = waiting.datagrams.pop_front()?;
        waiting.bytes -= datagram.len();
        Some(datagram)
    }

    /// Waits for the next datagram. One wait at a time.
    pub async fn receive(&self) -> Vec<u8> {
        loop {
            if let Some(datagram) = self.take() {
                return datagram;
            }
            self.arrived.notified().await;
        }
    }

    /// Sends datagrams to the client, as many as the gate takes at once; returns how many.
    ///
    /// # Errors
    /// What sendmmsg(2) says of the first; `WouldBlock` when the gate is full.
    pub fn try_send<'a>(&self, datagrams: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let route = Route {
            peer: Some(self.origin.key.peer),
            source: self.origin.source,
        };
        datagram::send(self.origin.gate.as_fd(), datagrams, route, &self.cuts)
    }

    /// Sends one datagram to the client, waiting while the gate is full.
    ///
    /// # Errors
    /// What sendmmsg(2) says; `WouldBlock` when the gate stays full.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut attempts = 1;
        loop {
            match self.try_send(std::iter::once(bytes)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done.map(|_| ()),
            }
            if attempts == FULL_ATTEMPTS_MAX {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            attempts += 1;
            tokio::time::sleep(FULL_PAUSE).await;
        }
    }

    /// Counts datagrams that are given to the session; returns how many of them are its.
    pub(crate) fn count(&self, datagrams: usize) -> (usize, Given) {
        let left = self.datagrams_left.get();
        if left == 0 {
            return (datagrams, Given::More);
        }
        let taken = datagrams.min(usize::try_from(left).unwrap_or(usize::MAX));
        match left - taken as u64 {
            0 => (taken, Given::Last),
            left => {
                self.datagrams_left.set(left);
                (taken, Given::More)
            }
        }
    }
}
