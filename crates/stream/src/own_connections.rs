//! Connections and flows that sessions have opened to addresses of `stream` in this process. By
//! them a session that is accepted is known to come from another one. Other addresses, those of
//! HTTP among them, are nothing to this module.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::socket::Kind;

/// What sessions of all lanes have opened to addresses of ours.
#[derive(Default)]
pub struct OwnConnections {
    known: Mutex<HashMap<Ends, Opened>>,
    /// How many they are: most servers have none, and need no lock.
    count: AtomicUsize,
}

/// The two ends of a connection or a flow, from the one that opened it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ends {
    Inet(Kind, SocketAddr, SocketAddr),
    /// Over a unix socket, by the name of the end that opened it.
    Unix(Vec<u8>),
}

pub(crate) struct Opened {
    /// The number of the session that opened it.
    pub(crate) serial: u64,
    /// The addresses that it has come through, that of this session last.
    pub(crate) came_through: Vec<ListenAddress>,
}

/// What a session has opened. It is not known any more when this is dropped.
pub(crate) struct OwnConnection {
    all: Arc<OwnConnections>,
    ends: Ends,
    serial: u64,
}

/// Where a session is passed to.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    Inet(SocketAddr),
    /// The path of a unix socket.
    Unix(&'a [u8]),
}

impl OwnConnections {
    fn known(&self) -> MutexGuard<'_, HashMap<Ends, Opened>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is known: most sessions need not look.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The addresses that what has these ends has come through.
    pub(crate) fn find(&self, ends: &Ends) -> Option<Vec<ListenAddress>> {
        let known = self.known();
        known.get(ends).map(|opened| opened.came_through.clone())
    }

    /// Adds what a session opens.
    pub(crate) fn add(self: &Arc<Self>, ends: Ends, opened: Opened) -> OwnConnection {
        let serial = opened.serial;
        let mut known = self.known();
        known.insert(ends.clone(), opened);
        self.count.store(known.len(), Ordering::Release);
        OwnConnection {
            all: Arc::clone(self),
            ends,
            serial,
        }
    }
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        let mut known = self.all.known();
        // Another session may have these ends by now.
        let is_own = |opened: &Opened| opened.serial == self.serial;
        if known.get(&self.ends).is_some_and(is_own) {
            known.remove(&self.ends);
        }
        self.all.count.store(known.len(), Ordering::Release);
    }
}

/// The ends of a connection or flow between two addresses, as both sides see them.
pub(crate) fn inet(kind: Kind, from: SocketAddr, to: SocketAddr) -> Ends {
    let canonical =
        |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (from, mut to) = (canonical(from), canonical(to));
    if to.ip().is_unspecified() {
        // The kernel takes it for this machine, which it reaches from the same address.
        to.set_ip(from.ip());
    }
    Ends::Inet(kind, from, to)
}

#[cfg(test)]
mod tests {
    //! What is known of connections, and for how long.

    #![allow(clippy::unwrap_used)]

    use super::*;

    fn ends(from: &str, to: &str) -> Ends {
        inet(Kind::Stream, from.parse().unwrap(), to.parse().unwrap())
    }

    fn opened(serial: u64) -> Opened {
        Opened {
            serial,
            came_through: vec![ListenAddress::Unix((*b"/a").into())],
        }
    }

    #[test]
    fn both_sides_see_the_same_ends() {
        let opened = ends("127.0.0.1:5", "127.0.0.1:80");
        assert_eq!(
            opened,
            ends("[::ffff:127.0.0.1]:5", "[::ffff:127.0.0.1]:80")
        );
        assert_eq!(opened, ends("127.0.0.1:5", "0.0.0.0:80"));
        assert_ne!(opened, ends("127.0.0.1:6", "127.0.0.1:80"));
        assert_ne!(opened, ends("127.0.0.1:5", "127.0.0.2:80"));
    }

    #[test]
    fn a_connection_is_known_until_its_session_drops_it() {
        let all = Arc::new(OwnConnections::default());
        let ends = ends("127.0.0.1:5", "127.0.0.1:80");
        let first = all.add(ends.clone(), opened(1));
        assert_eq!(all.find(&ends).unwrap().len(), 1);
        let second = all.add(ends.clone(), opened(2));
        drop(first);
        assert!(all.find(&ends).is_some(), "it is another session's by now");
        drop(second);
        assert!(all.is_empty() && all.find(&ends).is_none());
    }
}
