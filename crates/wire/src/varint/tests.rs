use super::*;
use crate::hex;

/// Encoded integers of RFC 9000 appendix A.1, and the limits of each length.
const CASES: &[(&str, u64)] = &[
    ("c2197c5eff14e88c", 151_288_809_941_952_652),
    ("9d7f3e7d", 494_878_333),
    ("7bbd", 15_293),
    ("25", 37),
    ("00", 0),
    ("3f", 63),
    ("4040", 64),
    ("7fff", 16_383),
    ("80004000", 16_384),
    ("bfffffff", (1 << 30) - 1),
    ("c000000040000000", 1 << 30),
    ("ffffffffffffffff", VARINT_MAX),
];

#[test]
fn integers_are_read_and_written() {
    for (encoded, value) in CASES {
        let bytes = hex::bytes(encoded.as_bytes()).expect(encoded);
        let mut written = Vec::new();
        write(&mut written, *value);
        assert_eq!(written, bytes, "{value}");
        assert_eq!(size_bytes(*value), bytes.len());
        for length in 0..bytes.len() {
            let mut cut = &bytes[..length];
            assert_eq!(read(&mut cut), None, "{encoded} cut at {length}");
            assert_eq!(cut.len(), length);
        }
        let behind = [bytes.as_slice(), b"rest"].concat();
        let mut input = behind.as_slice();
        assert_eq!((read(&mut input), input), (Some(*value), &b"rest"[..]));
    }
    let mut longer_than_needed = &b"\x40\x25"[..];
    assert_eq!(read(&mut longer_than_needed), Some(37));
}
