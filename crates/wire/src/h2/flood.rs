//! Limits on cheap frames that make the server work.
//!
//! Each kind of frame that serves no request has a credit, which is refilled over time. A correct
//! peer never uses it up, even on a long connection: peers that measure how fast data comes answer
//! it with such frames, so the DATA that was sent to them earns some. Bytes are limited too, as in
//! nginx.

use super::error::{ConnectionError, ErrorCode};

/// Streams that end by a reset from either side: a client that leaves a page resets some hundreds
/// of requests at most. Our own resets count too, since a client can cause them (CVE-2023-44487,
/// CVE-2025-8671). A client that gives up answers it has begun to read has paid for that by their
/// bytes: half a DATA frame of the usual size, since many streams may share a small window.
const RESETS: Allowance = Allowance::new(400, 40).earned(0, 4 * 1024);

/// SETTINGS frames: clients send one or two; those that measure the bandwidth one whenever it turns
/// out to be larger, and it is 64 KB at first.
const SETTINGS: Allowance = Allowance::new(64, 4).earned(0, 64 * 1024);

/// PING frames: clients that measure round trips send some each second. Those of gRPC measure one
/// after another while data comes, each with the DATA frame that comes next.
const PINGS: Allowance = Allowance::new(256, 32).earned(1, 16 * 1024);

/// Frames that carry no data and end no stream, and those of unknown kinds.
const EMPTY: Allowance = Allowance::new(256, 16);

/// DATA frames of a client's stream of at most [`TINY_DATA_BYTES_MAX`] that do not end it. Each
/// costs as much as a large one, and the ratio of bytes allows any number of them. A client that
/// sends each byte as it is typed stays far below; a program that sends a body byte by byte may
/// send 16 KB at once. A stream with more is reset, and its connection serves others on.
const TINY_DATA_OF_STREAM: Allowance = Allowance::new(16_384, 2_048);

/// The same of all streams of a connection, those too that were reset: what two streams may send.
const TINY_DATA: Allowance = Allowance::new(32_768, 4_096);

/// The most bytes of a tiny DATA frame: whole messages of gRPC and masked frames of WebSockets have
/// at least five.
pub(super) const TINY_DATA_BYTES_MAX: usize = 4;

// One stream cannot use up what all of them have.
const _: () = assert!(TINY_DATA_OF_STREAM.most < TINY_DATA.most);

/// PRIORITY and PRIORITY_UPDATE frames: browsers send one or two for each stream.
const PRIORITIES: Allowance = Allowance::new(1024, 256);

/// WINDOW_UPDATE frames: at most one for the stream and one for the connection follow a DATA frame.
const WINDOW_UPDATES: Allowance = Allowance::new(2048, 512).earned(2, 16 * 1024);

/// Small frames of header blocks, neither the first nor the last: see [`CONTINUATION_BYTES_MIN`].
const CONTINUATIONS: Allowance = Allowance::new(64, 8);

/// The bytes from which on such a frame is not counted: the limit of a block bounds their number,
/// and a client with large heads has to divide them.
pub(super) const CONTINUATION_BYTES_MIN: usize = 1024;

/// The bytes that may come without serving a request, and their largest ratio to the bytes that do;
/// both values are nginx's.
const OVERHEAD_BYTES: u64 = 1024 * 1024;
const OVERHEAD_TIMES: u64 = 8;

/// The number of uses at once, and the number of uses that each second adds.
#[derive(Clone, Copy)]
struct Allowance {
    most: u32,
    each_second: u32,
    /// The uses that a sent DATA frame earns, however short it is.
    each_frame: u32,
    /// The bytes of DATA that earn one use more; 0: none do.
    earning_bytes: u32,
}

impl Allowance {
    const fn new(most: u32, each_second: u32) -> Allowance {
        Allowance {
            most,
            each_second,
            each_frame: 0,
            earning_bytes: 0,
        }
    }

    const fn earned(self, each_frame: u32, earning_bytes: u32) -> Allowance {
        Allowance {
            each_frame,
            earning_bytes,
            ..self
        }
    }

    /// What a sent DATA frame of so many bytes earns.
    fn earned_thousandths(self, bytes: usize) -> i64 {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / THOUSANDTHS);
        let by_bytes = (bytes * THOUSANDTHS).checked_div(i64::from(self.earning_bytes));
        i64::from(self.each_frame) * THOUSANDTHS + by_bytes.unwrap_or(0)
    }
}

/// A thousandth of a use is what a millisecond adds to an allowance of one each second.
const THOUSANDTHS: i64 = 1000;

/// What is used of an allowance: less than nothing, where more was earned than used.
#[derive(Clone, Copy, Default)]
pub(super) struct Credit {
    used_thousandths: i64,
    since_ms: u64,
}

impl Credit {
    /// Uses one; `false` if none is left.
    fn take(&mut self, allowance: Allowance, now_ms: u64) -> bool {
        let elapsed_ms = i64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(i64::MAX);
        let back = elapsed_ms.saturating_mul(i64::from(allowance.each_second));
        self.since_ms = now_ms;
        self.gain(back, 0);
        self.used_thousandths = self.used_thousandths.saturating_add(THOUSANDTHS);
        self.used_thousandths <= i64::from(allowance.most) * THOUSANDTHS
    }

    /// Sent DATA earns uses. At most as many as an allowance are kept for what the peer sends once
    /// it has received that: however much was sent, no more than twice as many come at once.
    fn earn(&mut self, allowance: Allowance, bytes: usize) {
        let earned = allowance.earned_thousandths(bytes);
        self.gain(earned, -i64::from(allowance.most) * THOUSANDTHS);
    }

    /// Takes uses back, down to `least`.
    fn gain(&mut self, thousandths: i64, least: i64) {
        let left = self.used_thousandths.saturating_sub(thousandths);
        self.used_thousandths = left.max(self.used_thousandths.min(least));
    }
}

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
    all_bytes: u64,
    useful_bytes: u64,
    now_ms: u64,
}

impl FloodGuard {
    /// Sets the time of the next events, in monotonic milliseconds.
    pub(super) fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Counts a limited event.
    pub(super) fn count(&mut self, nuisance: Nuisance) -> Result<(), ConnectionError> {
        let (allowance, reason) = nuisance.limit();
        match self.credits[nuisance as usize].take(allowance, self.now_ms) {
            true => Ok(()),
            false => Err(ConnectionError::new(ErrorCode::EnhanceYourCalm, reason)),
        }
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
        self.all_bytes += bytes as u64;
        self.useful_bytes += bytes as u64;
    }

    /// Counts a frame: all of its bytes, and those that serve a request.
    pub(super) fn weigh(
        &mut self,
        bytes: usize,
        useful_bytes: usize,
    ) -> Result<(), ConnectionError> {
        self.all_bytes += bytes as u64;
        self.useful_bytes += useful_bytes as u64;
        match self.all_bytes / OVERHEAD_TIMES > self.useful_bytes + OVERHEAD_BYTES {
            false => Ok(()),
            true => Err(ConnectionError::new(
                ErrorCode::EnhanceYourCalm,
                "http2 flood detected",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    //! How an allowance is used and comes back.

    use super::{Allowance, Credit, FloodGuard, Nuisance};

    #[test]
    fn an_allowance_comes_back_in_fractions() {
        let allowance = Allowance::new(10, 3);
        // The pause between uses in milliseconds, and how many of 1000 are allowed before one is
        // refused: of three each second, nine tenths come back in 300 milliseconds.
        let cases = [(0, 10), (111, 14), (300, 91), (333, 1000), (5000, 1000)];
        for (pause_ms, expected) in cases {
            let mut credit = Credit::default();
            let uses = (1..=1000_u64).map(|round| credit.take(allowance, round * pause_ms));
            let allowed = uses.take_while(|is_allowed| *is_allowed).count();
            assert_eq!(allowed, expected, "{pause_ms} ms apart");
        }
    }

    /// Frames of DATA that are sent before each frame of the kind, their bytes, and how many frames
    /// of 10,000 are taken at most.
    const EARNED: &[(Nuisance, u32, usize, u32)] = &[
        (Nuisance::Ping, 0, 0, 256),
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
    fn no_amount_of_data_earns_more_than_twice_the_allowance_at_once() {
        for (nuisance, expected) in [
            (Nuisance::Ping, 512),
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
