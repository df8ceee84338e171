//! Bodies on their way into a zone in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Zone;
use crate::why::WhyNotStored;

/// Room that is made at once for a body of known length, in bytes; the rest grows as it comes,
/// since a length is only a promise.
const RESERVED_BYTES_MAX: u64 = 1024 * 1024;

/// The least room that is made at once, in bytes.
const RESERVED_BYTES_MIN: u64 = 4096;

const _: () = assert!(RESERVED_BYTES_MIN < RESERVED_BYTES_MAX);

/// The limit of all bodies on their way, in times the size of their zone: memory of twice the size
/// is taken at most, and one body that the zone can hold is never refused because of itself.
const ZONES_MAX: u64 = 1;

/// A body that grows. Its memory counts against a limit of its zone until it is dropped.
pub struct GrowingBody {
    bytes: Vec<u8>,
    /// The bytes of memory of all bodies on their way into the zone.
    sum: Arc<AtomicU64>,
    /// The bytes of memory of this one.
    counted: u64,
    sum_max: u64,
    /// The largest body that can be stored, in bytes.
    length_max: u64,
}

impl Zone {
    /// Begins a body of this length, if it is known.
    ///
    /// # Errors
    /// It is too large, or too many others are on their way.
    pub fn begin_body(&self, length: Option<u64>) -> Result<GrowingBody, WhyNotStored> {
        let mut body = GrowingBody {
            bytes: Vec::new(),
            sum: self.growing_bytes.clone(),
            counted: 0,
            sum_max: self.bytes_max().saturating_mul(ZONES_MAX),
            length_max: self.length_max(),
        };
        body.grow_to(length.unwrap_or(0).min(RESERVED_BYTES_MAX))?;
        Ok(body)
    }
}

impl GrowingBody {
    /// Appends bytes.
    ///
    /// # Errors
    /// The body is too large, or too many others are on their way. It is of no use then.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), WhyNotStored> {
        let length = self.bytes.len() as u64 + piece.len() as u64;
        if length > self.length_max {
            return Err(WhyNotStored::TooLarge);
        }
        if length > self.counted {
            let room = (2 * self.counted)
                .max(RESERVED_BYTES_MIN)
                .min(self.length_max);
            // If all of it is not to be had, what is needed may be.
            let grown = self.grow_to(room.max(length));
            grown.or_else(|_| self.grow_to(length))?;
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// The whole body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes room for this many bytes in all.
    fn grow_to(&mut self, room: u64) -> Result<(), WhyNotStored> {
        let more = room.saturating_sub(self.counted);
        let before = self.sum.fetch_add(more, Ordering::Relaxed);
        self.counted += more;
        if before.saturating_add(more) > self.sum_max {
            self.sum.fetch_sub(more, Ordering::Relaxed);
            self.counted -= more;
            return Err(WhyNotStored::ZoneBusy);
        }
        self.bytes
            .reserve_exact((room as usize).saturating_sub(self.bytes.len()));
        Ok(())
    }
}

impl Drop for GrowingBody {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.counted, Ordering::Relaxed);
    }
}
