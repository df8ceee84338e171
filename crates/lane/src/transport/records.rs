//! The sizes of the TLS records that a server sends: small ones first, large ones later.
//!
//! A client can use a record only when all of it has come. While a connection is new, the network
//! carries few segments in a round trip, so a record of one segment can be used at once and a large
//! one may need another round trip, or wait for a lost segment. Later, large records cost less.

use std::io::IoSlice;

/// Bytes of content of a small record: with its head, its tag and the largest usual heads of IPv6,
/// TCP and PPPoE it fits into a packet of 1500 bytes.
pub(super) const SMALL_RECORD_BYTES: usize = 1370;

/// Bytes that are sent in small records: about what the first round trip carries, ten segments
/// (RFC 6928).
pub(super) const SMALL_BYTES_MAX: usize = 10 * SMALL_RECORD_BYTES;

/// Milliseconds without output after which records are small again. The kernel makes the window of
/// an idle connection small after its retransmission time-out (RFC 5681 section 4.1), which is
/// below this in most networks.
pub(super) const IDLE_MS: u64 = 1_000;

/// Most slices of one record; more are left to the next record.
pub(super) const SLICES_MAX: usize = 8;

/// The records of a session.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Bytes that were sent since the connection was new or idle.
    sent_bytes: usize,
    /// The time of the last output, in milliseconds by a monotonic clock.
    last_ms: u64,
}

impl Records {
    /// Begins output at a time, in milliseconds by a monotonic clock.
    pub(super) fn begin(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.last_ms) >= IDLE_MS {
            self.sent_bytes = 0;
        }
        self.last_ms = now_ms;
    }

    /// The bytes that are given to the library at a time, which begins a record with them:
    /// `usize::MAX` if the largest records may be sent.
    pub(super) fn next_bytes_max(&self) -> usize {
        if self.sent_bytes < SMALL_BYTES_MAX {
            SMALL_RECORD_BYTES
        } else {
            usize::MAX
        }
    }

    /// Counts bytes that the library has taken.
    pub(super) fn taken(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
    }
}

/// The bytes of the slices from `from` on, at most `bytes_max` of them, in the room given. Returns
/// the number of slices there.
pub(super) fn part<'a>(
    slices: &'a [IoSlice<'_>],
    mut from: usize,
    bytes_max: usize,
    room: &mut [IoSlice<'a>; SLICES_MAX],
) -> usize {
    let mut left = bytes_max;
    let mut count = 0;
    for slice in slices {
        let skipped = from.min(slice.len());
        from -= skipped;
        let bytes = &slice[skipped..];
        let bytes = &bytes[..bytes.len().min(left)];
        if bytes.is_empty() {
            continue;
        }
        if count == SLICES_MAX {
            break;
        }
        left -= bytes.len();
        room[count] = IoSlice::new(bytes);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    //! When records are small, and what is in them.

    use std::io::IoSlice;

    use super::{IDLE_MS, Records, SLICES_MAX, SMALL_BYTES_MAX, SMALL_RECORD_BYTES, part};

    #[test]
    fn records_are_small_at_first_and_after_an_idle_time() {
        let mut records = Records::default();
        // The time of the output in milliseconds, its bytes, and whether it was in small records.
        let outputs = [
            (IDLE_MS * 5, SMALL_BYTES_MAX - 1, true),
            (IDLE_MS * 5 + 1, 1, true),
            (IDLE_MS * 5 + 2, 1, false),
            (IDLE_MS * 6, 1, false),
            (IDLE_MS * 7 - 1, 1, false),
            (IDLE_MS * 8 - 1, SMALL_BYTES_MAX, true),
            (IDLE_MS * 8, 1, false),
        ];
        for (now_ms, bytes, is_small) in outputs {
            records.begin(now_ms);
            let expected = if is_small {
                SMALL_RECORD_BYTES
            } else {
                usize::MAX
            };
            assert_eq!(records.next_bytes_max(), expected, "{now_ms}");
            records.taken(bytes);
        }
    }

    #[test]
    fn a_part_of_slices_has_the_bytes_that_are_due() {
        let texts: &[&[&str]] = &[
            &["abcdef"],
            &["", "ab", "", "cdef", ""],
            &["a", "b", "c", "d", "e", "f"],
        ];
        for text in texts {
            let slices: Vec<_> = text
                .iter()
                .map(|text| IoSlice::new(text.as_bytes()))
                .collect();
            for (from, bytes_max, expected) in [
                (0, usize::MAX, "abcdef"),
                (0, 3, "abc"),
                (2, 3, "cde"),
                (5, 3, "f"),
                (6, 3, ""),
            ] {
                let mut room = [IoSlice::new(&[]); SLICES_MAX];
                let count = part(&slices, from, bytes_max, &mut room);
                let bytes: Vec<&[u8]> = room[..count].iter().map(|slice| &**slice).collect();
                assert_eq!(bytes.concat(), expected.as_bytes(), "{text:?} from {from}");
            }
        }
        let many = [IoSlice::new(b"x"); SLICES_MAX + 1];
        let mut room = [IoSlice::new(&[]); SLICES_MAX];
        assert_eq!(part(&many, 0, usize::MAX, &mut room), SLICES_MAX);
        assert_eq!(part(&many, SLICES_MAX, usize::MAX, &mut room), 1);
    }
}
