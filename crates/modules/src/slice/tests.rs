//! Tables: which part a range begins with, and what a response says of its part.

use super::part::{content_range, first_byte};

#[test]
fn the_first_part_is_the_one_that_a_range_begins_with() {
    for (range, expected) in [
        ("bytes=0-0", 0),
        ("bytes=9-", 0),
        ("bytes=10-", 10),
        ("bytes= 25 - 30", 20),
        ("BYTES=19-25", 10),
        ("bytes=-5", 0),
        ("bytes=11-12,31-32", 0),
        ("lines=11-12", 0),
        ("bytes=99999999999999999999-", 0),
        ("bytes=9223372036854775797-", 9_223_372_036_854_775_790),
        ("bytes=9223372036854775798-", 0),
        ("bytes=9223372036854775807-", 0),
        ("bytes=", 0),
        ("", 0),
    ] {
        assert_eq!(first_byte(Some(range.as_bytes()), 10), expected, "{range}");
    }
    assert_eq!(first_byte(None, 10), 0);
}

#[test]
fn ranges_of_content_are_read_by_the_rfc() {
    for (text, expected) in [
        ("bytes 0-1/10", Some((0, 2, Some(10)))),
        ("Bytes 2-9/10", Some((2, 10, Some(10)))),
        ("bytes 0-1/*", Some((0, 2, None))),
        ("bytes 0-9/9", None),
        ("bytes 3-2/9", None),
        ("bytes */9", None),
        ("bytes 0-1", None),
        ("bytes", None),
        ("bytes a-b/c", None),
        ("", None),
    ] {
        assert_eq!(content_range(text.as_bytes()), expected, "{text}");
    }
}
