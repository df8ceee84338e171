//! Tests of this family.

use super::parse::{ByteRange, RequestedRanges, parse};

const LENGTH: u64 = 100;

fn one(start: u64, end: u64) -> RequestedRanges {
    RequestedRanges::One(ByteRange { start, end })
}

#[test]
fn ranges_are_read_as_nginx_reads_them() {
    let cases = [
        ("0-8", one(0, 9)),
        ("-10", one(90, 100)),
        ("-1000", one(0, 100)),
        ("95-", one(95, 100)),
        (" 3 - 5 ", one(3, 6)),
        ("90-200", one(90, 100)),
        ("100-", RequestedRanges::Unsatisfiable),
        ("100-200,0-1", one(0, 2)),
        ("5-4", RequestedRanges::Unsatisfiable),
        ("x", RequestedRanges::Unsatisfiable),
        ("0-1x", RequestedRanges::Unsatisfiable),
        ("1", RequestedRanges::Unsatisfiable),
        ("-", RequestedRanges::Unsatisfiable),
        ("-0", RequestedRanges::Unsatisfiable),
        ("0-1,", one(0, 2)),
        (", ,0-1, ,", one(0, 2)),
        (",", RequestedRanges::Unsatisfiable),
        ("9223372036854775808-", RequestedRanges::Unsatisfiable),
        ("0-9223372036854775807", one(0, 100)),
        ("0-99999999999999999999999", one(0, 100)),
        ("-99999999999999999999999", one(0, 100)),
        ("99999999999999999999999-", RequestedRanges::Unsatisfiable),
        ("0-60,40-99", RequestedRanges::Whole),
    ];
    for (value, expected) in cases {
        assert_eq!(parse(value.as_bytes(), LENGTH, None), expected, "{value}");
    }
    assert_eq!(parse(b"0-", 0, None), RequestedRanges::Whole);
}

#[test]
fn many_ranges_are_limited() {
    let several = |ranges: &[(u64, u64)]| {
        let range = |&(start, end): &(u64, u64)| ByteRange { start, end };
        RequestedRanges::Several(ranges.iter().map(range).collect())
    };
    let two = several(&[(0, 1), (2, 4)]);
    assert_eq!(parse(b"0-0, 2-3", LENGTH, None), two);
    assert_eq!(parse(b"0-0,2-3", LENGTH, Some(2)), two);
    assert_eq!(parse(b"0-0,2-3", LENGTH, Some(1)), RequestedRanges::Whole);
    let many = ["1-1"; 20].join(",");
    assert_eq!(parse(many.as_bytes(), LENGTH, None), RequestedRanges::Whole);
    let listed = several(&[(1, 2); 20]);
    assert_eq!(parse(many.as_bytes(), LENGTH, Some(20)), listed);
}
