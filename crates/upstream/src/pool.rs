//! Idle connections of one lane to the peers of one group.
//!
//! No task waits on an idle connection: it is checked for a close by its peer when it is used, and
//! periodically by the lane's tick.

use std::cell::RefCell;

use crate::connection::{ConnectOptions, Connection};
use crate::peer::picked::Picked;

/// An idle connection of the lane's own loop that was checked within this time, in milliseconds, is
/// used without another kernel check: busy pools save a system call per request, and idle pools do
/// not give out connections that were closed meanwhile.
const TRUSTED_MS: u64 = 1000;

/// The limit from which on as many connections again are kept for [`SURPLUS_MS`]: under load, the
/// number that is idle goes up and down by more than that within a round of the lane, and opening
/// a connection costs as much as a request. A limit up to the default may stand for what the
/// peer can bear.
const EXACT_MAX: usize = 32;

/// How long a connection beyond the limit waits for its next request, in milliseconds: rounds of
/// a busy lane are much shorter.
const SURPLUS_MS: u64 = 100;

/// How much is known of an idle connection before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The lane's loop may have looked a moment ago: enough for a request that can be repeated.
    Trust,
    /// The kernel is asked whether the peer has closed it.
    Ask,
}

/// The limits of idle connections, with nginx's defaults (1.29.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The most idle connections of a lane for the group; 0 keeps none. Above 32, up to as many
    /// again are kept for the tenth of a second after their last request.
    pub connections_max: usize,
    /// The requests after which a connection is closed.
    pub requests_max: u64,
    /// The age after which a connection is closed at the end of its request, in milliseconds.
    pub time_ms: u64,
    /// The longest idle time of a connection, in milliseconds.
    pub timeout_ms: u64,
    /// Whether only the location that opened a connection may reuse it.
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

    /// Whether connections are kept: the requests' `Connection` field depends on it.
    pub fn keeps(&self) -> bool {
        self.settings.connections_max > 0
    }

    /// An idle connection to that peer with the same options; the one used last.
    pub fn take(
        &self,
        picked: &Picked,
        options: &ConnectOptions<'_>,
        now_ms: u64,
        liveness: Liveness,
    ) -> Option<Box<Connection>> {
        let local = self.settings.local;
        let mut idle = self.idle.borrow_mut();
        loop {
            let serves = |idle: &Idle| idle.connection.key().serves(picked, options, local);
            let found = idle.iter().rposition(serves);
            let idle = idle.remove(found?);
            // Unsolicited input is not a response to the next request (RFC 9112 section 9.2). The
            // lane's own loop reports it; for other connections only the kernel does.
            let trusted = idle.connection.watched_socket().is_some()
                && now_ms.saturating_sub(idle.looked_ms) < TRUSTED_MS;
            if !idle
                .connection
                .looks_idle(liveness == Liveness::Ask || !trusted)
            {
                continue;
            }
            idle.connection.used_again();
            return Some(idle.connection);
        }
    }

    /// Keeps a connection whose request and response are complete, or closes it if it is too old or
    /// was used enough.
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
        let at_once_max = match settings.connections_max {
            most if most > EXACT_MAX => most.saturating_mul(2),
            most => most,
        };
        if idle.len() >= at_once_max {
            idle.remove(0);
        }
        idle.push(Idle {
            connection,
            since_ms: now_ms,
            looked_ms: now_ms,
        });
    }

    /// Closes the idle connections to a peer: one of them was closed by the peer, so the others
    /// probably are too.
    pub fn forget(&self, peer: &Picked) {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|idle| idle.connection.key().peer != *peer.address());
    }

    /// Closes connections that were idle too long, that are too many, or that the peer has closed.
    pub fn tick(&self, now_ms: u64) {
        let timeout_ms = self.settings.timeout_ms;
        let mut connections = self.idle.borrow_mut();
        let mut surplus = connections
            .len()
            .saturating_sub(self.settings.connections_max);
        connections.retain_mut(|idle| {
            // Those used last are at the end.
            if surplus > 0 && now_ms.saturating_sub(idle.since_ms) >= SURPLUS_MS {
                surplus -= 1;
                return false;
            }
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

    /// The number of idle connections.
    pub fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.idle.borrow().is_empty()
    }
}
