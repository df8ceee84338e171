//! Limits on cheap frames that make the server work.
//!
//! Each kind of frame that serves no request has a credit, which is refilled over time. A correct
//! peer never uses it up, even on a long connection. Bytes are limited too, as in nginx.

use super::error::{ConnectionError, ErrorCode};

/// Streams that end by a reset from either side: a client that leaves a page resets some hundreds
/// of requests at most. Our own resets count too, since a client can cause them (CVE-2023-44487,
/// CVE-2025-8671).
const RESETS: Allowance = Allowance::new(400, 40);

/// SETTINGS frames: clients send one or two.
const SETTINGS: Allowance = Allowance::new(64, 4);

/// PING frames: clients that measure round trips send some each second.
const PINGS: Allowance = Allowance::new(256, 32);

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

/// PRIORITY and PRIORITY_UPDATE frames: browsers send one or two for each stream.
const PRIORITIES: Allowance = Allowance::new(1024, 256);

/// WINDOW_UPDATE frames beyond those that the sent data explains.
const WINDOW_UPDATES: Allowance = Allowance::new(2048, 512);

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
}

impl Allowance {
    const fn new(most: u32, each_second: u32) -> Allowance {
        Allowance { most, each_second }
    }
}

/// A thousandth of a use is what a millisecond adds to an allowance of one each second.
const THOUSANDTHS: u64 = 1000;

/// What is used of an allowance.
#[derive(Clone, Copy, Default)]
pub(super) struct Credit {
    used_thousandths: u64,
    since_ms: u64,
}

impl Credit {
    /// Uses one; `false` if none is left.
    fn take(&mut self, allowance: Allowance, now_ms: u64) -> bool {
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        let back = elapsed_ms.saturating_mul(u64::from(allowance.each_second));
        self.since_ms = now_ms;
        self.used_thousandths = self.used_thousandths.saturating_sub(back) + THOUSANDTHS;
        self.used_thousandths <= u64::from(allowance.most) * THOUSANDTHS
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
        let (allowance, reason) = match nuisance {
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
        };
        match self.credits[nuisance as usize].take(allowance, self.now_ms) {
            true => Ok(()),
            false => Err(ConnectionError::new(ErrorCode::EnhanceYourCalm, reason)),
        }
    }

    /// Counts a tiny DATA frame of a stream; `false`: the stream has sent too many.
    pub(super) fn allows_tiny_data(&self, of_stream: &mut Credit) -> bool {
        of_stream.take(TINY_DATA_OF_STREAM, self.now_ms)
    }

    /// Notes that DATA was sent: the peer may widen a window for it.
    pub(super) fn data_sent(&mut self) {
        let credit = &mut self.credits[Nuisance::WindowUpdate as usize];
        credit.used_thousandths = credit.used_thousandths.saturating_sub(2 * THOUSANDTHS);
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

    use super::{Allowance, Credit};

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
}
