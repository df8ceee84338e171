use super::*;

/// A key, random bytes, a place, and the ID that they make.
type Vector = (
    &'static [u8; KEY_BYTES],
    &'static [u8; RANDOM_BYTES],
    Place,
    &'static [u8],
);

/// IDs that a third implementation has made. The steering program is judged by them too.
pub(crate) const VECTORS: &[Vector] = &[
    (
        KEY,
        &[0; 8],
        Place {
            gate: 0,
            serial: 0,
            process: 0,
        },
        b"\xed\xef\x32\x32\xd3\x61\xe3\x03\xa7\x81\x76\xa0",
    ),
    (
        KEY,
        &[0, 1, 2, 3, 4, 5, 6, 7],
        Place {
            gate: 1,
            serial: 0,
            process: 7,
        },
        b"\x91\x41\xee\x7e\x1f\xf6\xe9\x25\x63\x24\x94\x9a",
    ),
    (
        b"0123456789abcdef",
        &[0xff; 8],
        Place {
            gate: 2,
            serial: 0,
            process: 0xffff,
        },
        b"\x11\x54\x75\x80\x30\x1d\xc9\xff\x45\x6e\x81\xae",
    ),
    (
        b"0123456789abcdef",
        &[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11],
        Place {
            gate: 255,
            serial: 0,
            process: 1,
        },
        b"\xe9\x1e\x82\xe2\xbd\xb0\x46\x46\xf4\xe4\xd7\x89",
    ),
    (
        &[0; KEY_BYTES],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        Place {
            gate: 3,
            serial: 0,
            process: 2,
        },
        b"\x84\x68\x2c\x32\xa8\x8e\xe3\x11\x5d\x5f\x12\x94",
    ),
];

/// IDs that clients have chosen, and their numbers by [`KEY`].
pub(crate) const OTHERS: &[(&[u8], u64)] = &[
    (b"", 0x30a9_2496_9dd9_4ac9),
    (b"\x83\x94\xc8\xf0\x3e\x51\x57\x08", 0x69db_1a59_c9ee_fa9a),
    (b"abcdefghijkl", 0x1c1c_1717_1e3a_fd9f),
    (b"xxxxxxxxxxxxxxxxxxxx", 0xbb42_f3c3_0aa8_4bd0),
];

pub(crate) const KEY: &[u8; KEY_BYTES] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[test]
fn ids_are_those_of_the_vectors() {
    for (key, random, place, id) in VECTORS {
        let ids = ConnectionIds::new(**key);
        assert_eq!(ids.write(**random, *place), **id, "{place:?}");
        assert_eq!(ids.read(id), Some(*place));
        assert_eq!(ids.read(&id[1..]), None);
        assert_eq!(ids.read(&[id, &b"x"[..]].concat()), None);
    }
    for (id, expected) in OTHERS {
        let hash = ConnectionIds::new(*KEY).hash_of_other(id);
        assert_eq!(hash, *expected, "{id:02x?}");
    }
}

#[test]
fn a_changed_id_names_no_place_that_its_sender_can_choose() {
    let ids = ConnectionIds::new(*KEY);
    let place = Place {
        gate: 1,
        serial: 0,
        process: 7,
    };
    let mut named = Vec::new();
    for number in 0..200_u64 {
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let id = ids.write(random.to_le_bytes(), place);
        for bit in 0..CONNECTION_ID_BYTES * 8 {
            let mut changed = id;
            changed[bit / 8] ^= 1 << (bit % 8);
            named.extend(ids.read(&changed));
        }
    }
    // Of 19,200 forged IDs hardly one names one of 256 lanes of the same process, and their lanes
    // differ.
    let is_there = |other: &&Place| other.process == place.process && other.serial == 0;
    assert!(named.iter().filter(is_there).count() < 3);
    named.sort_by_key(|place| (place.process, place.serial, place.gate));
    named.dedup();
    assert!(named.len() > 19_000, "{}", named.len());
}
