//! Samples of requests that the program has answered: the reader's side of a ring buffer of the
//! kernel (BPF_MAP_TYPE_RINGBUF, Linux 5.8). Nothing here waits or makes a system call.
//!
//! ```text
//!  the reader's page: how far is read (bytes since the start)
//!  the writer's page: how far is written
//!  the ring, and once more behind it, so that no record has a gap:
//!      length | busy | discarded (32 bits), 32 bits of the kernel, the record, room up to 8 bytes
//! ```

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Mutex, TryLockError};

use turnpike_lane::sys::mapping::{SharedWords, WrittenWords};
use turnpike_lane::sys::process::page_bytes;

use crate::layout::sample::{
    DESTINATION, GENERATION, NOTE, PORTS, RING_BYTES, SOURCE, WORDS as HEAD_WORDS,
};

/// Bits of a record's length (BPF_RINGBUF_BUSY_BIT, BPF_RINGBUF_DISCARD_BIT).
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// How long a record may be written: the program takes microseconds, and a machine that stands
/// still in the midst of them some seconds. What is written longer is none.
const WRITTEN_NS_MAX: u64 = 10_000_000_000;

/// Bytes in front of a record (BPF_RINGBUF_HDR_SZ).
const RECORD_HEAD_BYTES: u64 = 8;

/// A request that the program has answered.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// What was noted of the answer: see [`crate::Answer::note`].
    pub note: u64,
    pub client: SocketAddr,
    /// The address that the client connected to.
    pub gate: SocketAddr,
    /// Bytes of the answer, head and body.
    pub answer_bytes: u32,
    /// The request's head, as it came.
    pub head: &'a [u8],
}

/// The ring, mapped.
#[derive(Debug)]
pub(crate) struct SampleRing {
    reader: SharedWords,
    writer: WrittenWords,
    /// Words of a page, behind which the ring begins.
    page_words: usize,
    /// The position of the reader, who holds the lock while reading.
    place: Mutex<Place>,
}

/// Where the ring is read.
#[derive(Debug, Default)]
struct Place {
    /// A record that was copied.
    record: Vec<u8>,
    /// A position whose record is still written, and the monotonic time at which it first was.
    awaited: Option<(u64, u64)>,
}

impl SampleRing {
    /// Maps the ring.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn map(ring: BorrowedFd<'_>) -> io::Result<SampleRing> {
        let page_bytes = page_bytes();
        let page_words = page_bytes / 8;
        Ok(SampleRing {
            reader: SharedWords::map(ring, page_words)?,
            writer: WrittenWords::map(ring, page_words + 2 * RING_BYTES / 8, page_bytes)?,
            page_words,
            place: Mutex::default(),
        })
    }

    /// Takes at most so many records at that monotonic time; `take` gets those of that
    /// configuration.
    pub(crate) fn take(
        &self,
        generation: u64,
        count_max: usize,
        now_ns: u64,
        take: &mut dyn FnMut(Sample<'_>),
    ) {
        let mut place = match self.place.try_lock() {
            Ok(place) => place,
            // Whoever has ended in the midst has given the record's room back.
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        for _ in 0..count_max {
            let Some(is_kept) = self.copy_next(&mut place, now_ns) else {
                return;
            };
            if is_kept
                && word_of(&place.record, GENERATION) == generation
                && let Some(sample) = read(&place.record)
            {
                take(sample);
            }
        }
    }

    /// Moves the reader on by so many bytes.
    #[cfg(test)]
    pub(crate) fn move_reader(&self, bytes: u64) {
        self.reader.words()[0].fetch_add(bytes, Relaxed);
    }

    /// Copies the next record and gives its room back to the program. Returns whether it counts;
    /// `None`: there is none yet.
    fn copy_next(&self, place: &mut Place, now_ns: u64) -> Option<bool> {
        let reader = &self.reader.words()[0];
        let position = reader.load(Relaxed);
        let end = self.writer.word(0);
        let waiting = end.wrapping_sub(position);
        if waiting == 0 {
            return None;
        }
        let at = position as usize % RING_BYTES / 8 + self.page_words;
        let head = self.writer.word(at) as u32;
        let bytes = head & !(BUSY | DISCARDED);
        let step = (u64::from(bytes) + RECORD_HEAD_BYTES).next_multiple_of(8);
        let is_written = head & BUSY != 0;
        let is_stuck = is_written && place.waits_too_long(position, now_ns);
        if waiting > RING_BYTES as u64 || (!is_written && step > waiting) || is_stuck {
            // Another process has read here too: nobody knows where a record begins.
            reader.store(end, Release);
            return Some(false);
        }
        if is_written {
            return None;
        }
        let record = &mut place.record;
        record.clear();
        let words = (bytes as usize).div_ceil(8);
        (1..=words).for_each(|word| record.extend(self.writer.word(at + word).to_ne_bytes()));
        record.truncate(bytes as usize);
        reader.store(position.wrapping_add(step), Release);
        Some(head & DISCARDED == 0)
    }
}

impl Place {
    /// Whether the record at a position has been written for longer than one is.
    fn waits_too_long(&mut self, position: u64, now_ns: u64) -> bool {
        let awaited = self.awaited.filter(|(at, _)| *at == position);
        let (_, since_ns) = *self.awaited.insert(awaited.unwrap_or((position, now_ns)));
        now_ns.saturating_sub(since_ns) > WRITTEN_NS_MAX
    }
}

/// Reads a record; `None`: it is none of the program.
fn read(record: &[u8]) -> Option<Sample<'_>> {
    let head = record.get(HEAD_WORDS * 8..)?;
    let ports = word_of(record, PORTS);
    let address = |at: usize, port: u64| {
        let halves = [at, at + 1].map(|word| word_of(record, word).to_ne_bytes());
        let bytes: [u8; 16] = halves.concat().try_into().unwrap_or_default();
        SocketAddr::new(
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
            port as u16,
        )
    };
    Some(Sample {
        note: word_of(record, NOTE),
        client: address(SOURCE, ports),
        gate: address(DESTINATION, ports >> 16),
        answer_bytes: (ports >> 32) as u32,
        head,
    })
}

/// A word of a record; 0 behind its end.
fn word_of(record: &[u8], word: usize) -> u64 {
    let bytes = record.get(word * 8..word * 8 + 8);
    bytes.map_or(0, |bytes| {
        u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
    })
}
