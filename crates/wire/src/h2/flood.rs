//! Limits on cheap frames that make the server work.
//!
//! Each kind of frame that serves no request has a credit, which is refilled over time. A correct
//! peer never uses it up, even on a long connection: peers that measure how fast data comes answer
//! it with such frames, so the DATA that was sent to them earns some. Others accompany requests, so
//! heads earn them. Bytes are limited too, as in nginx.

use super::error::{ConnectionError, ErrorCode};
pub(super) use crate::allowance::TINY_DATA_BYTES_MAX;
use crate::allowance::{
    Allowance, Credit, EMPTY, Overhead, PRIORITIES, PRIORITIES_OF_HEAD, RESETS, TINY_DATA,
    TINY_DATA_OF_STREAM, counts_reset,
};

/// SETTINGS frames: clients send one or two; those that measure the bandwidth one whenever it turns
/// out to be larger, and it is 64 KB at first.
const SETTINGS: Allowance = Allowance::new(64, 4).earned(0, 64 * 1024);

/// PING frames: a client that sees to the health of its connection waits for each answer, and its
/// least pause is a millisecond (`SendPingTimeout` of Go), so it sends fewer than 1,000 a second.
/// One costs less than the least request: one to read and 17 bytes to send, which are bounded too
/// where the client takes none. Clients of gRPC measure one round trip after another while data
/// comes, each with the DATA frame that comes next. Go's send one behind a reset, to see whether
/// the server still answers, so that a reset that is allowed earns one.
const PINGS: Allowance = Allowance::new(1024, 1000).earned(1, 16 * 1024);

/// WINDOW_UPDATE frames: at most one for the stream and one for the connection follow a DATA frame.
/// Firefox sends one behind each head of a request, which earns it.
const WINDOW_UPDATES: Allowance = Allowance::new(2048, 512).earned(2, 16 * 1024);

/// Small frames of header blocks, neither the first nor the last: see [`CONTINUATION_BYTES_MIN`].
const CONTINUATIONS: Allowance = Allowance::new(64, 8);

/// The bytes from which on such a frame is not counted: the limit of a block bounds their number,
/// and a client with large heads has to divide them.
pub(super) const CONTINUATION_BYTES_MIN: usize = 1024;

/// The limited events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nuisance {
    Reset,
    Settings,
    Ping,
    Empty,
    TinyData,
    Priority,
    WindowUpdate,
    Continuation,
}

impl Nuisance {
    /// The kinds of which sent DATA earns some.
    const EARNED: [Nuisance; 4] = [
        Nuisance::Reset,
        Nuisance::Settings,
        Nuisance::Ping,
        Nuisance::WindowUpdate,
    ];

    /// The kinds of which a head earns some, and how many.
    const EARNED_BY_HEAD: [(Nuisance, u32); 3] = [
        (Nuisance::Empty, 1),
        (Nuisance::Priority, PRIORITIES_OF_HEAD),
        (Nuisance::WindowUpdate, 1),
    ];

    /// How many are allowed, and the log message of more.
    fn limit(self) -> (Allowance, &'static str) {
        match self {
            Nuisance::Reset => (RESETS, "http2 flood detected: too many streams were reset"),
            Nuisance::Settings => (SETTINGS, "http2 flood detected: too many SETTINGS frames"),
            Nuisance::Ping => (PINGS, "http2 flood detected: too many PING frames"),
            Nuisance::Empty => (EMPTY, "http2 flood detected: too many empty frames"),
            Nuisance::TinyData => (TINY_DATA, "http2 flood detected: too many tiny DATA frames"),
            Nuisance::Priority => (PRIORITIES, "client sent too many PRIORITY frames"),
            Nuisance::WindowUpdate => (
                WINDOW_UPDATES,
                "http2 flood detected: too many WINDOW_UPDATE frames",
            ),
            Nuisance::Continuation => (
                CONTINUATIONS,
                "http2 flood detected: too many CONTINUATION frames",
            ),
        }
    }
}

/// The limits of one connection.
#[derive(Default)]
pub(super) struct FloodGuard {
    credits: [Credit; 8],
    overhead: Overhead,
    now_ms: u64,
}

impl FloodGuard {
    /// Sets the time of the next events, in monotonic milliseconds.
    pub(super) fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The time of the events, in monotonic milliseconds.
    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Counts a limited event.
    pub(super) fn count(&mut self, nuisance: Nuisance) -> Result<(), ConnectionError> {
        let (allowance, reason) = nuisance.limit();
        if !self.credits[nuisance as usize].take(allowance, self.now_ms) {
            return Err(ConnectionError::new(ErrorCode::EnhanceYourCalm, reason));
        }
        Ok(())
    }

    /// Counts the reset of a stream, which was opened then if it is open.
    pub(super) fn count_reset(&mut self, opened_ms: Option<u64>) -> Result<(), ConnectionError> {
        if opened_ms.is_none_or(|opened_ms| counts_reset(opened_ms, self.now_ms)) {
            self.count(Nuisance::Reset)?;
        }
        self.earn(Nuisance::Ping, 1);
        Ok(())
    }

    /// Notes a received head: some frames accompany it.
    pub(super) fn head_received(&mut self) {
        for (nuisance, uses) in Nuisance::EARNED_BY_HEAD {
            self.earn(nuisance, uses);
        }
    }

    /// Notes received DATA that is not tiny: a frame of an unknown kind may follow it.
    pub(super) fn data_received(&mut self) {
        self.earn(Nuisance::Empty, 1);
    }

    fn earn(&mut self, nuisance: Nuisance, uses: u32) {
        let (allowance, _) = nuisance.limit();
        self.credits[nuisance as usize].earn_uses(allowance, uses);
    }

    /// Counts a tiny DATA frame of a stream; `false`: the stream has sent too many.
    pub(super) fn allows_tiny_data(&self, of_stream: &mut Credit) -> bool {
        of_stream.take(TINY_DATA_OF_STREAM, self.now_ms)
    }

    /// Notes a sent DATA frame of so many bytes: the peer may widen a window and measure round
    /// trips for it. As in nginx it is traffic that serves a request, whoever sends it.
    pub(super) fn data_sent(&mut self, bytes: usize) {
        for nuisance in Nuisance::EARNED {
            let (allowance, _) = nuisance.limit();
            self.credits[nuisance as usize].earn(allowance, bytes);
        }
        self.overhead.allows(bytes, bytes);
    }

    /// Counts a frame: all of its bytes, and those that serve a request.
    pub(super) fn weigh(
        &mut self,
        bytes: usize,
        useful_bytes: usize,
    ) -> Result<(), ConnectionError> {
        if self.overhead.allows(bytes, useful_bytes) {
            Ok(())
        } else {
            Err(ConnectionError::new(
                ErrorCode::EnhanceYourCalm,
                "http2 flood detected",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    //! What sent DATA earns.

    use super::{FloodGuard, Nuisance};

    /// Frames of DATA that are sent before each frame of the kind, their bytes, and how many frames
    /// of 10,000 are taken at most.
    const EARNED: &[(Nuisance, u32, usize, u32)] = &[
        (Nuisance::Ping, 0, 0, 1024),
        (Nuisance::Ping, 1, 8192, 10_000),
        (Nuisance::Ping, 1, 1, 10_000),
        (Nuisance::WindowUpdate, 0, 0, 2048),
        (Nuisance::WindowUpdate, 1, 1, 10_000),
        (Nuisance::Settings, 1, 8192, 73),
        (Nuisance::Settings, 8, 8192, 10_000),
        (Nuisance::Reset, 1, 2048, 800),
        (Nuisance::Reset, 1, 8192, 10_000),
        (Nuisance::Empty, 9, 8192, 256),
        (Nuisance::Priority, 9, 8192, 1024),
        (Nuisance::Continuation, 9, 8192, 64),
    ];

    #[test]
    fn sent_data_earns_some_kinds_one_for_so_many_bytes() {
        for (nuisance, frames, bytes, expected) in EARNED {
            let mut guard = FloodGuard::default();
            let mut taken = 0;
            while taken < 10_000 {
                (0..*frames).for_each(|_| guard.data_sent(*bytes));
                if guard.count(*nuisance).is_err() {
                    break;
                }
                taken += 1;
            }
            assert_eq!(taken, *expected, "{nuisance:?}, {frames} of {bytes}");
        }
    }

    #[test]
    fn a_ping_behind_each_reset_is_no_flood_of_its_own() {
        let mut guard = FloodGuard::default();
        let mut resets = 0;
        while guard.count_reset(None).is_ok() {
            resets += 1;
            assert_eq!(guard.count(Nuisance::Ping), Ok(()), "after {resets} resets");
        }
        assert_eq!(resets, 400);
        let pings = (0..10_000).take_while(|_| guard.count(Nuisance::Ping).is_ok());
        assert_eq!(pings.count(), 1024);
    }

    #[test]
    fn a_ping_for_each_millisecond_of_silence_is_no_flood() {
        // How many milliseconds pass between two PINGs, and how many of 20,000 are taken.
        for (pings_each_ms, expected) in [(1, 20_000), (2, 2_047)] {
            let mut guard = FloodGuard::default();
            let taken = (0..20_000).take_while(|number| {
                guard.set_now(number / pings_each_ms);
                guard.count(Nuisance::Ping).is_ok()
            });
            assert_eq!(taken.count(), expected, "{pings_each_ms} each millisecond");
        }
    }

    #[test]
    fn the_reset_of_a_long_stream_is_not_counted() {
        for (age_ms, expected) in [(999, 400), (1_000, 10_000)] {
            let mut guard = FloodGuard::default();
            guard.set_now(5_000);
            let opened_ms = Some(5_000 - age_ms);
            let taken = (0..10_000).take_while(|_| guard.count_reset(opened_ms).is_ok());
            assert_eq!(taken.count(), expected, "{age_ms} ms old");
        }
    }

    /// Notes what earns a frame of another kind.
    type Earning = fn(&mut FloodGuard);

    #[test]
    fn heads_and_received_data_earn_the_frames_that_accompany_them() {
        // How many of each kind one of them earns.
        let cases: [(Earning, Nuisance, u32); 6] = [
            (FloodGuard::head_received, Nuisance::Empty, 1),
            (FloodGuard::head_received, Nuisance::Priority, 2),
            (FloodGuard::head_received, Nuisance::WindowUpdate, 1),
            (FloodGuard::data_received, Nuisance::Empty, 1),
            (FloodGuard::data_received, Nuisance::WindowUpdate, 0),
            (FloodGuard::head_received, Nuisance::Ping, 0),
        ];
        for (earning, nuisance, each) in cases {
            let (allowance, _) = nuisance.limit();
            for (frames, is_allowed) in [(each, true), (each + 1, false)] {
                let mut guard = FloodGuard::default();
                let rounds = allowance.most + 1;
                let allowed = (0..rounds).all(|_| {
                    earning(&mut guard);
                    (0..frames).all(|_| guard.count(nuisance).is_ok())
                });
                assert_eq!(allowed, is_allowed, "{frames} {nuisance:?}");
            }
        }
    }

    #[test]
    fn no_amount_of_data_earns_more_than_twice_the_allowance_at_once() {
        for (nuisance, expected) in [
            (Nuisance::Ping, 2048),
            (Nuisance::Settings, 128),
            (Nuisance::WindowUpdate, 4096),
            (Nuisance::Reset, 800),
        ] {
            let mut guard = FloodGuard::default();
            (0..10_000).for_each(|_| guard.data_sent(16_384));
            let taken = (0..10_000).take_while(|_| guard.count(nuisance).is_ok());
            assert_eq!(taken.count(), expected, "{nuisance:?}");
        }
    }

    #[test]
    fn a_long_download_outweighs_what_is_sent_for_it() {
        // Each frame of DATA is answered by a PING and two WINDOW_UPDATEs: 2 GB.
        let mut guard = FloodGuard::default();
        for _ in 0..250_000 {
            guard.data_sent(8192);
            assert_eq!(guard.weigh(17 + 2 * 13, 0), Ok(()));
        }
        let mut guard = FloodGuard::default();
        let mut rounds = 0..250_000;
        assert!(rounds.any(|_| guard.weigh(17 + 2 * 13, 0).is_err()));
    }
}
