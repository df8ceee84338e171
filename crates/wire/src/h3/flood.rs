//! Limits on cheap frames and streams that make the server work: those of HTTP/2, as far as QUIC
//! has none of its own.

use super::error::{ConnectionError, ErrorCode};
use crate::allowance::{
    Allowance, Credit, EMPTY, Overhead, PRIORITIES, PRIORITIES_OF_HEAD, RESETS, TINY_DATA,
    TINY_DATA_BYTES_MAX, TINY_DATA_OF_STREAM, counts_reset,
};

/// The limited events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nuisance {
    Reset,
    /// A frame or a stream that is of no use: without bytes, or of an unknown kind.
    Empty,
    TinyData,
    Priority,
}

impl Nuisance {
    /// How many are allowed, and the log message of more.
    fn limit(self) -> (Allowance, &'static str) {
        match self {
            Nuisance::Reset => (RESETS, "http3 flood detected: too many streams were reset"),
            Nuisance::Empty => (EMPTY, "http3 flood detected: too many empty frames"),
            Nuisance::TinyData => (TINY_DATA, "http3 flood detected: too many tiny DATA frames"),
            Nuisance::Priority => (PRIORITIES, "client sent too many PRIORITY_UPDATE frames"),
        }
    }
}

/// The limits of one connection.
#[derive(Default)]
pub(super) struct FloodGuard {
    credits: [Credit; 4],
    overhead: Overhead,
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
        if self.credits[nuisance as usize].take(allowance, self.now_ms) {
            Ok(())
        } else {
            Err(ConnectionError::new(ErrorCode::ExcessiveLoad, reason))
        }
    }

    /// Counts the reset of a stream, which was opened then if it is open.
    pub(super) fn count_reset(&mut self, opened_ms: Option<u64>) -> Result<(), ConnectionError> {
        if opened_ms.is_none_or(|opened_ms| counts_reset(opened_ms, self.now_ms)) {
            self.count(Nuisance::Reset)?;
        }
        Ok(())
    }

    /// Notes the header of a HEADERS frame: some frames accompany it.
    pub(super) fn head_begun(&mut self) {
        self.credits[Nuisance::Empty as usize].earn_uses(EMPTY, 1);
        self.credits[Nuisance::Priority as usize].earn_uses(PRIORITIES, PRIORITIES_OF_HEAD);
    }

    /// Counts the header of a DATA frame with so many bytes. `false`: its stream has sent too many
    /// tiny ones.
    pub(super) fn data_begun(
        &mut self,
        length: u64,
        of_stream: &mut Credit,
    ) -> Result<bool, ConnectionError> {
        if length == 0 {
            self.count(Nuisance::Empty)?;
        } else if length <= TINY_DATA_BYTES_MAX as u64 {
            self.count(Nuisance::TinyData)?;
            return Ok(of_stream.take(TINY_DATA_OF_STREAM, self.now_ms));
        } else {
            self.credits[Nuisance::Empty as usize].earn_uses(EMPTY, 1);
        }
        Ok(true)
    }

    /// Notes sent DATA of so many bytes: traffic that serves a request, whoever sends it.
    pub(super) fn data_sent(&mut self, bytes: usize) {
        self.credits[Nuisance::Reset as usize].earn(RESETS, bytes);
        self.overhead.allows(bytes, bytes);
    }

    /// Counts received bytes, and those among them that serve a request.
    pub(super) fn weigh(
        &mut self,
        bytes: usize,
        useful_bytes: usize,
    ) -> Result<(), ConnectionError> {
        if self.overhead.allows(bytes, useful_bytes) {
            Ok(())
        } else {
            Err(ConnectionError::new(
                ErrorCode::ExcessiveLoad,
                "http3 flood detected",
            ))
        }
    }
}
