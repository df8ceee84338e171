//! The numbers of cookies once more, written apart from the program, and judged by the vectors that
//! the program's own fuzz target is judged by.

use turnpike_lane::siphash::SipHash;
use turnpike_lane::sys::process::monotonic_ns;

use super::frame::Frame;
use super::{DROP, PASS, REQUEST, TRANSMIT, driver};

const VECTORS: &str = include_str!("../bpf/cookie_vectors.h");

/// Maximum segment sizes of SYNs, each of the next class.
const SEGMENT_SIZES: [u16; 4] = [536, 1220, 1440, 1460];

/// What a cookie is made from, beside the key.
#[derive(Clone, Copy)]
pub(super) struct Connection {
    /// The halves of the addresses, as they stand in memory.
    pub(super) source: [u64; 2],
    pub(super) destination: [u64; 2],
    pub(super) source_port: u16,
    pub(super) port: u16,
}

/// The number for each segment size.
fn numbers(key: [u64; 2], connection: &Connection, period: u64) -> [u32; 4] {
    let Connection {
        source,
        destination,
        source_port,
        port,
    } = *connection;
    let is_ipv6 = source[0] != 0;
    let mut hash = SipHash::new(key);
    if is_ipv6 {
        hash.word(source[0]);
        hash.word(destination[0]);
    }
    hash.word(source[1]);
    hash.word(destination[1]);
    hash.word(period << 32 | u64::from(source_port) << 16 | u64::from(port));
    let hash = hash.end(if is_ipv6 { 40 } else { 24 });
    let (first, distance) = (hash as u32, (hash >> 32) as u32);
    [0, 1, 2, 3].map(|size| first.wrapping_add(distance.wrapping_mul(size)))
}

#[test]
fn numbers_of_cookies_are_those_of_the_vectors() {
    let mut calls = VECTORS.split("COOKIE_VECTOR(");
    calls.next();
    let mut count = 0;
    for call in calls {
        let (words, _) = call.split_once(')').unwrap();
        let words = words.split(',').map(|word| match word.trim() {
            word if word.starts_with("0x") => u64::from_str_radix(&word[2..], 16).unwrap(),
            word => word.parse().unwrap(),
        });
        let words: Vec<u64> = words.collect();
        let connection = Connection {
            source: [words[2], words[3]],
            destination: [words[4], words[5]],
            source_port: words[6].try_into().unwrap(),
            port: words[7].try_into().unwrap(),
        };
        let numbers = numbers([words[0], words[1]], &connection, words[8]);
        assert_eq!(numbers.map(u64::from).as_slice(), &words[9..], "{call}");
        count += 1;
    }
    assert_eq!(count, 5);
}

/// SYNs of both families, each with its segment size's number.
fn syns() -> impl Iterator<Item = (usize, Frame)> {
    let sizes = SEGMENT_SIZES.into_iter().enumerate();
    sizes.flat_map(|(number, size)| {
        let [high, low] = size.to_be_bytes();
        let both = [Frame::syn_v4(), Frame::syn_v6()].into_iter();
        // No path of IPv6 is as narrow as the first size.
        both.filter(move |syn| number > 0 || !syn.is_ipv6())
            .map(move |syn| (number, syn.with_options(&[2, 4, high, low])))
    })
}

#[test]
fn first_numbers_are_cookies() {
    let Some(driver) = driver("first_numbers_are_cookies") else {
        return;
    };
    let key = driver.memory.cookie_key();
    for (size, syn) in syns() {
        let before = monotonic_ns() >> 36;
        let (verdict, answer) = driver.run(&syn);
        let after = monotonic_ns() >> 36;
        assert_eq!(verdict, TRANSMIT);
        let number = answer.sequence.wrapping_sub(syn.sequence);
        let connection = syn.connection();
        let is_cookie = |period| numbers(key, &connection, period)[size] == number;
        assert!((before..=after).any(is_cookie), "{syn:?}");
    }
}

#[test]
fn numbers_are_compared_whole() {
    let Some(driver) = driver("numbers_are_compared_whole") else {
        return;
    };
    for (_, syn) in syns() {
        let first = driver.connect(syn);
        assert_eq!(driver.run(&first).0, DROP, "{first:?}");
        // Somebody has sent a few bytes that the kernel took, or acknowledges what nobody has sent.
        for bytes in 1..=4_u32 {
            for bytes in [bytes, bytes.wrapping_neg()] {
                let number = first.acknowledgement.wrapping_add(bytes);
                let request = first.with_acknowledgement(number).with_text(REQUEST);
                assert_eq!(driver.run(&request).0, PASS, "{request:?}");
                let mut request = first.with_text(REQUEST);
                request.sequence = request.sequence.wrapping_add(bytes);
                assert_eq!(driver.run(&request).0, PASS, "{request:?}");
            }
        }
        assert_eq!(driver.run(&first.with_text(REQUEST)).0, TRANSMIT);
    }
}
