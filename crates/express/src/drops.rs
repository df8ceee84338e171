//! The table of clients whose segments the program drops. Lanes write it by plain stores.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release, SeqCst};

use turnpike_lane::siphash::SipHash;
use turnpike_lane::sys::mapping::SharedWords;

use crate::layout::WAYS;
use crate::layout::drops::{ADDRESS, BUCKETS, ENTRY_WORDS, EXPIRES, SEGMENTS, WORDS};

/// A time long ago: while an entry has it, another lane writes there.
const WRITTEN_NOW: u64 = 1;

/// The table, mapped.
#[derive(Debug)]
pub(crate) struct Drops(SharedWords);

impl Drops {
    /// Maps the table.
    pub(crate) fn map(array: BorrowedFd<'_>) -> io::Result<Drops> {
        SharedWords::map(array, WORDS).map(Drops)
    }

    /// Has segments from an address dropped until a time; `key` is the program's. Where there is no
    /// room, the client goes whose time is over first.
    pub(crate) fn add(&self, key: [u64; 2], address: [u64; 2], expires_ns: u64) {
        let rank = |entry: &&[AtomicU64]| {
            let is_other = !is_of(entry, address);
            (is_other, entry[EXPIRES].load(Relaxed))
        };
        let Some(entry) = self.bucket(key, address).min_by_key(rank) else {
            return;
        };
        let before = entry[EXPIRES].load(Relaxed);
        let claimed = entry[EXPIRES].compare_exchange(before, WRITTEN_NOW, AcqRel, Relaxed);
        if before == WRITTEN_NOW || claimed.is_err() {
            return; // another lane writes there; this client will be refused again
        }
        if !is_of(entry, address) {
            entry[SEGMENTS].store(0, Relaxed);
            for (word, value) in entry[ADDRESS..].iter().zip(address) {
                word.store(value, Relaxed);
            }
        }
        entry[EXPIRES].store(expires_ns, Release);
    }

    /// Removes all clients from the list.
    pub(crate) fn clear(&self) {
        for entry in self.0.words().chunks_exact(ENTRY_WORDS) {
            entry[EXPIRES].store(0, SeqCst);
        }
    }

    /// How many clients are dropped at that time.
    pub(crate) fn count(&self, now_ns: u64) -> usize {
        let entries = self.0.words().chunks_exact(ENTRY_WORDS);
        entries
            .filter(|entry| entry[EXPIRES].load(Relaxed) > now_ns)
            .count()
    }

    /// The places that an address can be in, as `is_dropped` in `bpf/drop.h` finds them.
    fn bucket(&self, key: [u64; 2], address: [u64; 2]) -> impl Iterator<Item = &[AtomicU64]> {
        let mut hash = SipHash::new(key);
        address.into_iter().for_each(|word| hash.word(word));
        let number = hash.end(16) as usize & (BUCKETS - 1);
        let words = &self.0.words()[number * WAYS * ENTRY_WORDS..][..WAYS * ENTRY_WORDS];
        words.chunks_exact(ENTRY_WORDS)
    }
}

fn is_of(entry: &[AtomicU64], address: [u64; 2]) -> bool {
    let mut words = entry[ADDRESS..].iter().zip(address);
    words.all(|(word, value)| word.load(Relaxed) == value)
}

/// An address in network order, IPv4 as `::ffff:a.b.c.d`.
pub(crate) fn address_words(address: IpAddr) -> [u64; 2] {
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let word = |from: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&octets[from..from + 8]);
        u64::from_ne_bytes(bytes)
    };
    [word(0), word(8)]
}
