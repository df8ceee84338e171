//! Tests with every byte and some numbers.

use super::{byte, bytes, digit, pair, pair_upper, text, write_number};

#[test]
fn every_byte_comes_back() {
    for value in 0..=u8::MAX {
        assert_eq!(pair(value), *format!("{value:02x}").as_bytes());
        assert_eq!(pair_upper(value), *format!("{value:02X}").as_bytes());
        assert_eq!(byte(&pair(value)), Some(value));
        assert_eq!(byte(&pair_upper(value)), Some(value));
        let expected = char::from(value).to_digit(16).map(|digit| digit as u8);
        assert_eq!(digit(value), expected);
    }
}

#[test]
fn texts() {
    assert_eq!(text(b"\x00\x7f\xff"), "007fff");
    let cases: &[(&str, Option<&[u8]>)] = &[
        ("", Some(b"")),
        ("007FfF", Some(b"\x00\x7f\xff")),
        ("0", None),
        ("0g", None),
        ("+1", None),
        ("123", None),
    ];
    for (text, expected) in cases {
        assert_eq!(bytes(text.as_bytes()).as_deref(), *expected, "{text}");
    }
    assert_eq!(byte(b"1"), None);
    assert_eq!(byte(b"12more"), Some(0x12));
}

#[test]
fn numbers_have_no_leading_zeros() {
    for number in [0, 1, 15, 16, 0xabc, u64::MAX >> 4, u64::MAX] {
        let mut out = Vec::new();
        write_number(&mut out, number);
        assert_eq!(out, format!("{number:x}").into_bytes());
    }
}
