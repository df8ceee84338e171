//! Connection IDs of QUIC that say which lane of which process has the connection, to those alone
//! who have the key.
//!
//! An ID hides eight random bytes and a place, each masked by a keyed hash of the other as it then
//! is:
//!
//! ```text
//!  masked place = place  ^ hash(random)           the last 4 bytes
//!  masked random = random ^ hash(masked place)    the first 8 bytes
//! ```
//!
//! An ID with a changed bit, or one that is made up, names a place that cannot be foretold; one in
//! some million is a place that is there. So nobody can choose the lane that has to look at his
//! datagrams, not even relative to another's. The steering program reads IDs in the same way
//! (`steering/steer.bpf.c`).

use crate::siphash::SipHash;

#[cfg(test)]
pub(crate) mod tests;

/// Bytes of a connection ID of ours.
pub const CONNECTION_ID_BYTES: usize = RANDOM_BYTES + PLACE_BYTES;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// The longest ID of anybody, in bytes (RFC 9000 section 17.2).
const OTHER_BYTES_MAX: usize = 20;

const RANDOM_BYTES: usize = 8;
const PLACE_BYTES: usize = 4;

// RFC 9000 section 17.2: an ID of version 1 has at most 20 bytes.
const _: () = assert!(CONNECTION_ID_BYTES <= OTHER_BYTES_MAX);

/// The lane that has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The gate that the lane's datagrams come by, of those of an address: the lane's number, or
    /// its remainder of 256.
    pub gate: u8,
    /// Tells lanes apart that have had the same gate.
    pub serial: u8,
    /// The number of the serving process.
    pub process: u16,
}

impl Place {
    fn word(self) -> u32 {
        let [high, low] = self.process.to_be_bytes();
        u32::from_be_bytes([high, low, self.serial, self.gate])
    }

    fn of_word(word: u32) -> Self {
        let [high, low, serial, gate] = word.to_be_bytes();
        Self {
            gate,
            serial,
            process: u16::from_be_bytes([high, low]),
        }
    }
}

/// Writes and reads connection IDs by a key.
#[derive(Clone, Copy)]
pub struct ConnectionIds {
    key: [u64; 2],
}

impl ConnectionIds {
    /// The IDs of this key.
    #[must_use]
    pub fn new(key: [u8; KEY_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = key;
        Self {
            key: [
                u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                u64::from_le_bytes(rest),
            ],
        }
    }

    /// The ID of a connection at that place with these random bytes.
    #[must_use]
    pub fn write(&self, random: [u8; RANDOM_BYTES], place: Place) -> [u8; CONNECTION_ID_BYTES] {
        let random = u64::from_le_bytes(random);
        let masked = place.word() ^ self.mask_of_place(random);
        let hidden = random ^ self.mask_of_random(masked);
        let mut id = [0; CONNECTION_ID_BYTES];
        let (first, last) = id.split_at_mut(RANDOM_BYTES);
        first.copy_from_slice(&hidden.to_le_bytes());
        last.copy_from_slice(&masked.to_le_bytes());
        id
    }

    /// The place that an ID names; `None`: it is not as long as ours. One that is not ours names
    /// any place.
    #[must_use]
    pub fn read(&self, id: &[u8]) -> Option<Place> {
        let (hidden, masked) = id.split_first_chunk::<RANDOM_BYTES>()?;
        let masked = u32::from_le_bytes(*masked.as_array::<PLACE_BYTES>()?);
        let random = u64::from_le_bytes(*hidden) ^ self.mask_of_random(masked);
        Some(Place::of_word(masked ^ self.mask_of_place(random)))
    }

    /// The number from which the lane of an ID follows that a client has chosen, as the remainder
    /// of a division by the number of lanes.
    #[must_use]
    pub fn hash_of_other(&self, id: &[u8]) -> u64 {
        let mut bytes = [0; 3 * 8];
        debug_assert!(id.len() <= OTHER_BYTES_MAX, "{} bytes", id.len());
        let id = &id[..id.len().min(OTHER_BYTES_MAX)];
        bytes[..id.len()].copy_from_slice(id);
        let mut hash = SipHash::new(self.key);
        for word in bytes.as_chunks::<8>().0 {
            hash.word(u64::from_le_bytes(*word));
        }
        hash.end(id.len() as u64)
    }

    fn mask_of_place(&self, random: u64) -> u32 {
        let mut hash = SipHash::new(self.key);
        hash.word(random);
        hash.end(RANDOM_BYTES as u64) as u32
    }

    fn mask_of_random(&self, masked: u32) -> u64 {
        let mut hash = SipHash::new(self.key);
        hash.word(u64::from(masked));
        hash.end(PLACE_BYTES as u64)
    }
}
