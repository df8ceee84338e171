//! Tests of values; every line follows nginx's own parsers.

use crate::value::{buffers, flag, milliseconds, number, offset, seconds, size};

const MAX: u64 = i64::MAX as u64;

#[test]
fn sizes_and_offsets() {
    let table: &[(&str, Option<u64>, Option<u64>)] = &[
        ("", None, None),
        ("0", Some(0), Some(0)),
        ("007", Some(7), Some(7)),
        ("1k", Some(1024), Some(1024)),
        ("1K", Some(1024), Some(1024)),
        ("2m", Some(2 << 20), Some(2 << 20)),
        ("2M", Some(2 << 20), Some(2 << 20)),
        ("3g", None, Some(3 << 30)),
        ("3G", None, Some(3 << 30)),
        ("k", None, None),
        ("1kk", None, None),
        ("1 k", None, None),
        (" 1", None, None),
        ("-1", None, None),
        ("+1", None, None),
        ("1.5m", None, None),
        ("1b", None, None),
        ("1ü", None, None),
        ("9223372036854775807", Some(MAX), Some(MAX)),
        ("9223372036854775808", None, None),
        (
            "9007199254740991k",
            Some(9_007_199_254_740_991 << 10),
            Some(9_007_199_254_740_991 << 10),
        ),
        ("9007199254740992k", None, None),
        (
            "8796093022207m",
            Some(8_796_093_022_207 << 20),
            Some(8_796_093_022_207 << 20),
        ),
        ("8796093022208m", None, None),
        ("8589934591g", None, Some(8_589_934_591 << 30)),
        ("8589934592g", None, None),
    ];
    for (text, as_size, as_offset) in table {
        assert_eq!((size(text), offset(text)), (*as_size, *as_offset), "{text}");
    }
}

#[test]
fn times() {
    const DAY: u64 = 86_400;
    let table: &[(&str, Option<u64>, Option<u64>)] = &[
        // text, milliseconds, seconds
        ("", None, None),
        ("0", Some(0), Some(0)),
        ("60", Some(60_000), Some(60)),
        ("60s", Some(60_000), Some(60)),
        ("500ms", Some(500), None),
        ("1s500ms", Some(1500), None),
        ("1s 500ms", Some(1500), None),
        ("1m", Some(60_000), Some(60)),
        ("2h", Some(7_200_000), Some(7200)),
        ("1h30m", Some(5_400_000), Some(5400)),
        ("1h 30m", Some(5_400_000), Some(5400)),
        ("1h   30m  ", Some(5_400_000), Some(5400)),
        ("1h 30", Some(3_630_000), Some(3630)),
        ("1h30", Some(3_630_000), Some(3630)),
        ("1d", Some(DAY * 1000), Some(DAY)),
        ("1w", Some(7 * DAY * 1000), Some(7 * DAY)),
        ("1M", None, Some(30 * DAY)),
        ("1y", None, Some(365 * DAY)),
        ("1y6M", None, Some(545 * DAY)),
        ("1w2d3h4m5s", Some(788_645_000), Some(788_645)),
        ("30m 1h", None, None),
        ("1m1m", None, None),
        ("1s1m", None, None),
        ("1M1y", None, None),
        ("5 ", Some(5000), Some(5)),
        ("5 6", Some(11_000), Some(11)),
        ("5 6s", None, None),
        ("1s ", Some(1000), Some(1)),
        (" ", None, None),
        (" 5", Some(5000), Some(5)),
        ("s", None, None),
        ("hm5", Some(5000), Some(5)),
        ("-5", None, None),
        ("5x", None, None),
        ("5H", None, None),
        ("9223372036854775807", None, Some(MAX)),
        ("9223372036854775808", None, None),
        (
            "9223372036854775",
            Some(9_223_372_036_854_775_000),
            Some(9_223_372_036_854_775),
        ),
        ("9223372036854775807ms", Some(MAX), None),
        (
            "153722867280912930m",
            None,
            Some(153_722_867_280_912_930 * 60),
        ),
        ("153722867280912931m", None, None),
        ("153722867280912930m8s", None, None),
    ];
    for (text, as_milliseconds, as_seconds) in table {
        assert_eq!(milliseconds(text), *as_milliseconds, "{text}");
        assert_eq!(seconds(text), *as_seconds, "{text}");
    }
}

#[test]
fn flags_numbers_and_buffers() {
    for (text, expected) in [
        ("on", Some(true)),
        ("OFF", Some(false)),
        ("1", None),
        ("", None),
    ] {
        assert_eq!(flag(text), expected, "{text}");
    }
    let numbers = [
        ("12", Some(12)),
        ("", None),
        ("1k", None),
        ("9223372036854775808", None),
    ];
    for (text, expected) in numbers {
        assert_eq!(number(text), expected, "{text}");
    }
    let table = [
        ("4", "8k", Some((4, 8192))),
        ("0", "8k", None),
        ("4", "0", None),
        ("4", "", None),
    ];
    for (count, each, expected) in table {
        assert_eq!(buffers(count, each), expected, "{count} {each}");
    }
}
