//! Connection IDs that say which lane of which process has the connection, to those alone who have
//! the key: a forged one leads to a lane that its sender cannot choose.
//!
//! An ID is eight random bytes and the place, masked by a keyed hash of these (SipHash-2-4).

/// Bytes of a connection ID of ours.
pub const CONNECTION_ID_BYTES: usize = RANDOM_BYTES + PLACE_BYTES;

const RANDOM_BYTES: usize = 8;
const PLACE_BYTES: usize = 4;

/// The place of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the lane.
    pub lane: u16,
    /// The number of the serving process.
    pub process: u16,
}

/// Writes and reads connection IDs by a key.
#[derive(Clone, Copy)]
pub struct ConnectionIds {
    key: [u64; 2],
}

impl ConnectionIds {
    /// The IDs of this key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let (low, high) = key.split_at(8);
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        Self {
            key: [number(low), number(high)],
        }
    }

    /// The ID of a connection at that place with these random bytes.
    #[must_use]
    pub fn write(&self, random: [u8; RANDOM_BYTES], place: Place) -> [u8; CONNECTION_ID_BYTES] {
        let mut id = [0; CONNECTION_ID_BYTES];
        let (start, end) = id.split_at_mut(RANDOM_BYTES);
        start.copy_from_slice(&random);
        let plain = u32::from(place.lane) << 16 | u32::from(place.process);
        end.copy_from_slice(&(plain ^ self.mask(random)).to_be_bytes());
        id
    }

    /// The place that an ID names; `None`: it is not as long as ours. An ID that is not ours names
    /// any place.
    #[must_use]
    pub fn read(&self, id: &[u8]) -> Option<Place> {
        let (random, end) = id.split_first_chunk::<RANDOM_BYTES>()?;
        let masked = u32::from_be_bytes(end.try_into().ok()?);
        let plain = masked ^ self.mask(*random);
        Some(Place {
            lane: (plain >> 16) as u16,
            process: plain as u16,
        })
    }

    fn mask(&self, random: [u8; RANDOM_BYTES]) -> u32 {
        sip_hash(self.key, u64::from_le_bytes(random)) as u32
    }
}

/// SipHash-2-4 of eight bytes.
fn sip_hash(key: [u64; 2], word: u64) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let length = (RANDOM_BYTES as u64) << 56;
    for word in [word, length] {
        state[3] ^= word;
        (0..2).for_each(|_| sip_round(&mut state));
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut state));
    state.iter().fold(0, |sum, part| sum ^ part)
}

fn sip_round(state: &mut [u64; 4]) {
    let [a, b, c, d] = *state;
    let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
    let (b, d) = (b.rotate_left(13) ^ a, d.rotate_left(16) ^ c);
    let a = a.rotate_left(32);
    let (c, a) = (c.wrapping_add(b), a.wrapping_add(d));
    let (b, d) = (b.rotate_left(17) ^ c, d.rotate_left(21) ^ a);
    *state = [a, b, c.rotate_left(32), d];
}

#[cfg(test)]
mod tests {
    use super::{CONNECTION_ID_BYTES, ConnectionIds, Place, sip_hash};

    /// The vector of eight bytes in the reference code of SipHash-2-4.
    #[test]
    fn the_hash_is_siphash() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(sip_hash(key, 0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn an_id_names_its_place_to_those_who_have_the_key() {
        let ids = ConnectionIds::new(*b"0123456789abcdef");
        let others = ConnectionIds::new(*b"0123456789abcdeF");
        for lane in [0, 1, 255, u16::MAX] {
            let place = Place { lane, process: 7 };
            let id = ids.write(*b"randomly", place);
            assert_eq!(ids.read(&id), Some(place));
            assert_ne!(others.read(&id), Some(place));
            assert_eq!(ids.read(&id[1..]), None);
        }
        assert_eq!(ids.read(&[0; CONNECTION_ID_BYTES + 1]), None);
    }
}
