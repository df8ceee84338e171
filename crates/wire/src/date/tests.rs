#![allow(clippy::unwrap_used)]

use std::time::{Duration, UNIX_EPOCH};

use super::*;

#[test]
fn dates_in_all_three_forms() {
    let table: &[(&str, Option<i64>)] = &[
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
        ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
        ("Sun Nov 6 08:49:37 1994", Some(784_111_777)),
        ("Thu Nov 10 23:50:13 1994", Some(784_511_413)),
        ("Sun, 06 Nov 1994 08:49:37", Some(784_111_777)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Wed, 31 Dec 1969 23:59:59 GMT", Some(-1)),
        ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
        ("Fri, 01-Jan-69 00:00:00 GMT", Some(3_124_224_000)),
        ("Mon, 29 Feb 2100 00:00:00 GMT", None),
        ("Sun, 31 Apr 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 24:00:00 GMT", None),
        ("Sun, 06 Nov 1994 08:60:00 GMT", None),
        ("Sun, 06 Nov 1994 08:49:60 GMT", None),
        ("sun, 06 nOV 1994 08:49:37 gmt", Some(784_111_777)),
        ("Sun, 06-Nov-1994 08:49:37 GMT", None),
        ("Sun, 6 Nov 1994 08:49:37 GMT", None),
        ("", None),
        (",", None),
        (" ", None),
        ("Sun Nov", None),
        ("0", None),
    ];
    for (text, expected) in table {
        assert_eq!(parse(text.as_bytes()), *expected, "{text}");
        for cut in 0..text.len() {
            let _ = parse(&text.as_bytes()[..cut]);
        }
    }
}

#[test]
fn formatted_dates_agree_with_httpdate() {
    let mut seconds: i64 = 0;
    while seconds < SECONDS_RANGE.1 {
        let time = UNIX_EPOCH + Duration::from_secs(seconds as u64);
        let ours = format(seconds);
        assert_eq!(
            std::str::from_utf8(&ours).unwrap(),
            httpdate::fmt_http_date(time)
        );
        assert_eq!(parse(&ours), Some(seconds));
        seconds += 12_345_679;
    }
}

#[test]
fn times_out_of_range_are_moved_into_it() {
    assert_eq!(&format(i64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(&format(i64::MIN), b"Sat, 01 Jan 0000 00:00:00 GMT");
    assert_eq!(&format(-1), b"Wed, 31 Dec 1969 23:59:59 GMT");
}
