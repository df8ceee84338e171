//! Idle connections of one lane to the peers of one group.
//!
//! No task waits on an idle connection: whether its peer has closed it is looked at when it is
//! wanted and, now and then, by the lane's tick.

use std::cell::RefCell;

use crate::connection::{ConnectOptions, Connection};
use crate::peer::picked::Picked;

/// An idle connection of the lane's own loop that was looked at within this time, in milliseconds,
/// is taken without asking the kernel again: busy pools spare a system call a request, and quiet
/// ones do not hand out what was closed meanwhile.
const TRUSTED_MS: u64 = 1000;

/// How idle connections are kept; nginx's defaults (1.29.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle connections that a lane keeps for the group; 0 keeps none.
    pub connections_max: usize,
    /// Requests after which a connection is closed.
    pub requests_max: u64,
    /// Age after which a connection is closed when its request is over, in milliseconds.
    pub time_ms: u64,
    /// How long a connection may be idle, in milliseconds.
    pub timeout_ms: u64,
    /// Whether a connection is used again only by the location that opened it.
    pub local: bool,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            connections_max: 32,
            requests_max: 1000,
            time_ms: 3_600_000,
            timeout_ms: 60_000,
            local: true,
        }
    }
}

/// The idle connections, those used last at the end.
pub struct Pool {
    settings: KeepAlive,
    idle: RefCell<Vec<Idle>>,
}

struct Idle {
    connection: Box<Connection>,
    since_ms: u64,
    looked_ms: u64,
}

impl Pool {
    /// An empty pool.
    pub fn new(settings: KeepAlive) -> Pool {
        Pool {
            settings,
            idle: RefCell::default(),
        }
    }

    /// Whether connections are kept at all: what a request's `Connection` field should say.
    pub fn keeps(&self) -> bool {
        self.settings.connections_max > 0
    }

    /// An idle connection to that peer, opened with the same options; the one used last.
    ///
    /// `surely`: the kernel is asked whether the peer has closed it, for a request that cannot be
    /// repeated should it have.
    pub fn take(
        &self,
        picked: &Picked,
        options: &ConnectOptions<'_>,
        now_ms: u64,
        surely: bool,
    ) -> Option<Box<Connection>> {
        let local = self.settings.local;
        let mut idle = self.idle.borrow_mut();
        loop {
            let serves = |idle: &Idle| idle.connection.key().serves(picked, options, local);
            let found = idle.iter().rposition(serves);
            let idle = idle.remove(found?);
            // What came while nobody waited is no answer to what is asked now (RFC 9112 section
            // 9.2). The lane's own loop tells of it; of others only the kernel does.
            let trusted = idle.connection.watched_socket().is_some()
                && now_ms.saturating_sub(idle.looked_ms) < TRUSTED_MS;
            if !idle.connection.looks_idle(surely || !trusted) {
                continue;
            }
            idle.connection.used_again();
            return Some(idle.connection);
        }
    }

    /// Keeps a connection whose request is over and whose response was read to its end; or closes
    /// it, where it is too old or was used enough.
    pub fn put(&self, connection: Box<Connection>, now_ms: u64) {
        let settings = &self.settings;
        let keep = settings.connections_max > 0
            && !connection.key().has_proxy_header()
            && connection.requests() < settings.requests_max
            && now_ms.saturating_sub(connection.opened_ms()) <= settings.time_ms
            && connection.looks_idle(false);
        if !keep {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= settings.connections_max {
            idle.remove(0);
        }
        idle.push(Idle {
            connection,
            since_ms: now_ms,
            looked_ms: now_ms,
        });
    }

    /// Closes the idle connections to a peer: one of them was found closed, so the others are
    /// hardly better.
    pub fn forget(&self, peer: &Picked) {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|idle| idle.connection.key().peer != *peer.address());
    }

    /// Closes what was idle too long and what the peer has closed.
    pub fn tick(&self, now_ms: u64) {
        let timeout_ms = self.settings.timeout_ms;
        self.idle.borrow_mut().retain_mut(|idle| {
            if now_ms.saturating_sub(idle.since_ms) >= timeout_ms {
                return false;
            }
            if now_ms.saturating_sub(idle.looked_ms) < TRUSTED_MS {
                return true;
            }
            idle.looked_ms = now_ms;
            idle.connection.looks_idle(true)
        });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.idle.borrow().is_empty()
    }
}
