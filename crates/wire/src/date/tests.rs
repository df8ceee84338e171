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
fn a_single_date_has_nothing_after_it() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 nOV 1994 08:49:37 gmt",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse_alone(text.as_bytes()), Some(784_111_777), "{text}");
        for more in [" GMT", ", Sun, 06 Nov 1994 08:49:37 GMT", "; length=5", " "] {
            let text = format!("{text}{more}");
            assert_eq!(parse_alone(text.as_bytes()), None, "{text}");
        }
    }
    for text in [
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37",
        "",
        ",",
    ] {
        assert_eq!(parse_alone(text.as_bytes()), None, "{text}");
    }
}

/// A two-digit year may be at most 50 years in the future (RFC 9110 section 5.6.7). The latest one
/// was less than 50 years ahead when this was written, so the rule cannot be broken later.
#[test]
fn years_of_two_digits_are_near() {
    for two in 0..100 {
        let text = format!("Sunday, 06-Nov-{two:02} 08:49:37 GMT");
        let year = civil(parse(text.as_bytes()).unwrap()).year;
        assert_eq!(year % 100, two, "{text}");
        assert!((1970..2026 + 50).contains(&year), "{text}");
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
