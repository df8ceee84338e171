//! What stands at a place of the lane's connections.

use std::rc::Rc;

use turnpike_lane::event_loop::Timer;
use turnpike_lane::log::Level;

use super::open::{Connection, RECEIVE_BYTES};
use super::tls::security::Handshaking;
use crate::exchange::{Action, Exchange};
use crate::h1::watch::Watch;
use crate::h2::connection::Http2Connection;
use crate::phase::Awaiting;
use crate::running::Running;
use crate::streams::shared::Shared;

/// How long a drain waits for the first request of a connection, in milliseconds: its bytes follow
/// the connect within a few round trips, of the slowest networks too.
const FIRST_GRACE_MS: u64 = 3_000;

/// How long a drain waits for the next request of an idle connection, in milliseconds. A client
/// that uses it steadily has sent one by then, and its answer says that the connection is closed.
const IDLE_GRACE_MS: u64 = 1_000;

/// What stands at a place of the lane's connections.
pub(super) enum Slot {
    /// The connection is served in this turn.
    InTurn,
    /// The connection waits.
    Parked(Parked),
    /// A connection of HTTP/2 waits: none of its streams is open.
    ParkedHttp2(Box<Http2Connection>),
    /// A future has it.
    Driven(Driven),
    /// A watched socket of the lane brings its answer.
    Awaiting(Awaited),
}

impl Slot {
    pub(super) fn parked(&self) -> Option<&Parked> {
        match self {
            Slot::Parked(parked) => Some(parked),
            _ => None,
        }
    }

    pub(super) fn parked_mut(&mut self) -> Option<&mut Parked> {
        match self {
            Slot::Parked(parked) => Some(parked),
            _ => None,
        }
    }

    /// A connection that a future has, and that does not end to make room.
    pub(super) fn driven_mut(&mut self) -> Option<&mut Driven> {
        match self {
            Slot::Driven(driven) if !driven.is_leaving => Some(driven),
            _ => None,
        }
    }

    /// Takes a parked connection out, to be served; leaves others where they are.
    pub(super) fn take_parked(&mut self) -> Option<Parked> {
        self.parked()?;
        match std::mem::replace(self, Slot::InTurn) {
            Slot::Parked(parked) => Some(parked),
            _ => None,
        }
    }
}

/// A connection that a future has.
pub(super) struct Driven {
    pub(super) watch: Rc<Watch>,
    pub(super) work: DrivenWork,
    /// Whether the connection ends to make room, which counts as free already.
    pub(super) is_leaving: bool,
}

/// What a future is at, for lists.
pub(super) enum DrivenWork {
    /// A connection is ended, or handed on.
    None,
    /// A request is answered.
    Request(Running),
    /// The streams of a connection of HTTP/2 are served.
    Streams(Rc<Shared>),
}

/// A parked connection. Idle ones are many, so what only a half-read head needs is boxed.
pub(super) struct Parked {
    pub(super) connection: Connection,
    pub(super) waits_for: Await,
    /// 0: waits for ever.
    pub(super) deadline_ms: u64,
}

impl Parked {
    /// Whether it only waits for its next request, and may be closed.
    pub(super) fn is_idle(&self, now_ms: u64) -> bool {
        matches!(self.waits_for, Await::Idle { kept, .. } if kept.left_ms(now_ms) == 0)
    }

    /// Since when it waits for a request's head, in monotonic milliseconds; `None`: none is due.
    pub(super) fn head_since_ms(&self) -> Option<u64> {
        match &self.waits_for {
            Await::First | Await::Handshake(_) => Some(self.connection.facts.accepted_ms),
            Await::Rest(half) => Some(half.started_ms),
            Await::Idle { .. } => None,
        }
    }
}

/// A connection with the request whose answer is awaited.
pub(super) struct Awaited {
    pub(super) connection: Connection,
    pub(super) exchange: Box<Exchange>,
    pub(super) awaiting: Box<dyn Awaiting>,
    /// In the lane's monotonic milliseconds; 0: never.
    pub(super) deadline_ms: u64,
    /// The timer of a wait that is brief.
    pub(super) brief: Option<Timer>,
    /// Whether the client has sent more, which was left in its socket.
    pub(super) unread: bool,
}

/// Whether a socket that was read holds more.
pub(super) enum More {
    /// The read filled the buffer.
    Likely,
    /// The read did not fill the buffer.
    Unlikely,
    /// The socket was emptied, or is no longer parked here.
    No,
}

impl More {
    /// After a read of that many bytes.
    pub(super) fn after(connection: &Connection, received: usize) -> More {
        if connection.transport.was_emptied(received, RECEIVE_BYTES) {
            More::Unlikely
        } else {
            More::Likely
        }
    }
}

/// What a parked connection waits for.
pub(super) enum Await {
    /// The first bytes.
    First,
    /// The client's part of the TLS handshake, which goes on from that state.
    Handshake(Box<Handshaking>),
    /// The rest of a head.
    Rest(Box<Half>),
    /// The next request.
    Idle {
        /// How long, in milliseconds.
        timeout_ms: u64,
        /// Until when it is closed neither by a drain nor for others.
        kept: KeptUntil,
    },
}

/// The end of `keepalive_min_timeout`. It is kept in half a word, so that an idle connection takes
/// no more memory: the times that it is compared with are within three weeks.
#[derive(Clone, Copy)]
pub(super) struct KeptUntil(u32);

impl KeptUntil {
    /// Longest time, in milliseconds: half of what the numbers go round in.
    const MS_MAX: u64 = i32::MAX as u64;

    /// Until so many milliseconds after `now_ms`, in the lane's monotonic time.
    pub(super) fn after(now_ms: u64, min_timeout_ms: u64) -> KeptUntil {
        // Only the lower half counts.
        KeptUntil((now_ms + min_timeout_ms.min(Self::MS_MAX)) as u32)
    }

    /// The milliseconds that are left; 0: it has passed.
    pub(super) fn left_ms(self, now_ms: u64) -> u64 {
        let left_ms = self.0.wrapping_sub(now_ms as u32);
        match u64::from(left_ms) {
            left_ms if left_ms > Self::MS_MAX => 0,
            left_ms => left_ms,
        }
    }
}

/// A head of which a part has come. The exchange itself goes back to the pool, so that a slow
/// client holds no more than what it sent.
pub(super) struct Half {
    pub(super) input: Vec<u8>,
    pub(super) started_ms: u64,
}

/// Why a head does not come whole: the status in the log, and the line in the error log.
#[derive(Clone, Copy)]
pub(super) struct GivenUp<'a> {
    pub(super) status: u16,
    pub(super) level: Level,
    pub(super) why: &'a str,
}

impl<'a> GivenUp<'a> {
    /// The client has closed the connection; nginx logs 400 too.
    pub(super) const CUT: GivenUp<'static> = GivenUp {
        status: CUT_OFF,
        level: Level::Info,
        why: "client prematurely closed connection",
    };

    /// The connection has failed.
    pub(super) fn failed(level: Level, why: &'a str) -> Self {
        let status = CUT_OFF;
        GivenUp { status, level, why }
    }

    /// The client was too slow.
    pub(super) fn late(why: &'a str) -> Self {
        GivenUp {
            status: TIMED_OUT,
            level: Level::Info,
            why,
        }
    }

    /// Whether the client was too slow.
    pub(super) fn is_late(&self) -> bool {
        self.status == TIMED_OUT
    }
}

/// The statuses that are logged.
const CUT_OFF: u16 = 400;
const TIMED_OUT: u16 = 408;

impl Await {
    /// How long it may wait for a request while the server drains; `None`: it has begun one.
    pub(super) fn grace_ms(&self, now_ms: u64) -> Option<u64> {
        match self {
            Self::First | Self::Handshake(_) => Some(FIRST_GRACE_MS),
            Self::Idle { kept, .. } => Some(kept.left_ms(now_ms).max(IDLE_GRACE_MS)),
            Self::Rest(_) => None,
        }
    }

    pub(super) fn action(&self) -> Action {
        match self {
            Self::First => Action::WaitingForRequest,
            Self::Handshake(_) => Action::HandshakingClient,
            Self::Rest(_) => Action::ReadingHeaders,
            Self::Idle { .. } => Action::KeepAlive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KeptUntil;

    #[test]
    fn the_time_of_a_kept_connection_passes_once() {
        // Where the lower half of the time goes round, and elsewhere.
        for now_ms in [
            0,
            1_000_000,
            u64::from(u32::MAX) - 5,
            u64::from(u32::MAX) + 1,
        ] {
            let kept = KeptUntil::after(now_ms, 10);
            let left: Vec<u64> = [0, 9, 10, 11, 1_000_000]
                .iter()
                .map(|later_ms| kept.left_ms(now_ms + later_ms))
                .collect();
            assert_eq!(left, [10, 1, 0, 0, 0], "{now_ms}");
        }
        assert_eq!(KeptUntil::after(7, 0).left_ms(7), 0);
    }
}
