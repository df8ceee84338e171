//! How much may be read at a time where a rate is limited: as nginx counts, a second's worth is
//! free at the beginning.

use turnpike_lane::clock::Clock;

use super::activity::pause;

/// A limit for one direction of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectionLimit {
    /// Bytes per second; 0 is without limit.
    pub(super) bytes_per_second: u64,
    /// When the session was connected, in the lane's monotonic milliseconds.
    pub(super) started_ms: u64,
}

/// What may be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing for so many milliseconds.
    Pause(u64),
}

impl DirectionLimit {
    /// What may be read at that time into a buffer of `bytes_max`, when `read` bytes were read.
    pub(super) fn room(&self, now_ms: u64, read: u64, bytes_max: usize) -> Room {
        if self.bytes_per_second == 0 {
            return Room::Bytes(bytes_max);
        }
        let seconds = now_ms.saturating_sub(self.started_ms) / 1000 + 1;
        let allowed = self.bytes_per_second.saturating_mul(seconds);
        match allowed.checked_sub(read) {
            None | Some(0) => {
                let over = read.saturating_sub(allowed);
                Room::Pause(over.saturating_mul(1000) / self.bytes_per_second + 1)
            }
            Some(left) => {
                Room::Bytes(usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max)))
            }
        }
    }

    /// Waits until something may be read, `read` bytes were so far; returns how much, at most
    /// `bytes_max`.
    pub(super) async fn next_room(&self, clock: &Clock, read: u64, bytes_max: usize) -> usize {
        loop {
            match self.room(clock.now_ms(), read, bytes_max) {
                Room::Bytes(bytes) => return bytes,
                Room::Pause(pause_ms) => pause(pause_ms).await,
            }
        }
    }

    /// How long to wait after so many bytes were read, in milliseconds.
    pub(super) fn pause_ms(&self, count: usize) -> u64 {
        match self.bytes_per_second {
            0 => 0,
            rate => (count as u64).saturating_mul(1000) / rate,
        }
    }
}
