use super::zone::{RateCheck, RateZone};
use crate::common::limits::parse_rate;

#[test]
fn reads_rates() {
    let cases = [
        ("1r/s", Some(1000)),
        ("30r/m", Some(500)),
        ("7", Some(7000)),
        ("0r/s", None),
        ("-1r/s", None),
        ("1r/h", None),
        ("", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_rate(text), expected, "{text}");
    }
}

#[test]
fn buckets_fill_and_leak() {
    use RateCheck::{Above, Within};
    let zone = RateZone::new(65_536);
    // Two requests a second, a burst of one: time and answer.
    let steps = [
        (1_000_000, Within(0)),
        (1_000_000, Within(1000)),
        (1_000_000, Above(2000)),
        (1_000_250, Above(1500)),
        (1_000_500, Within(1000)),
        // A lane whose clock is behind sees no time passing.
        (1_000_400, Above(2000)),
        (1_010_000, Within(0)),
    ];
    for (now_ms, expected) in steps {
        let got = zone.ask(b"key", 2000, 1000, now_ms, true);
        assert_eq!(got, expected, "at {now_ms}");
    }
    assert_eq!(zone.ask(b"other", 2000, 1000, 1_010_000, true), Within(0));
}

#[test]
fn held_buckets_stay_and_are_counted_later() {
    use RateCheck::{NoRoom, Within};
    let zone = RateZone::new(128);
    assert_eq!(zone.ask(b"a", 1000, 0, 1000, false), Within(0));
    assert_eq!(zone.ask(b"b", 1000, 0, 1000, true), NoRoom);
    zone.release(b"a");
    assert_eq!(zone.ask(b"b", 1000, 5000, 1000, true), Within(0));
    assert_eq!(zone.len(), 1);
    assert_eq!(zone.ask(b"b", 1000, 5000, 1000, false), Within(1000));
    assert_eq!(zone.account(b"b", 1000, 1000), 1000);
}

#[test]
fn long_keys_take_the_room_that_they_need() {
    let zone = RateZone::new(32 * 1024);
    for number in 0..1000_u32 {
        let key = [&[b'k'; 8000][..], &number.to_be_bytes()].concat();
        let got = zone.ask(&key, 1000, 0, u64::from(number), true);
        assert_eq!(got, RateCheck::Within(0));
        assert!(zone.len() <= 4);
    }
    for number in 0..200_u32 {
        zone.ask(&number.to_be_bytes(), 1000, 0, 2000, true);
    }
    assert_eq!(zone.len(), 200);
    assert_eq!(
        zone.ask(&[b'k'; 40_000], 1000, 0, 2000, true),
        RateCheck::NoRoom
    );
}

#[test]
fn a_full_zone_drops_the_oldest() {
    let zone = RateZone::new(3 * 128);
    for number in 0..100_u32 {
        let got = zone.ask(&number.to_be_bytes(), 1000, 0, u64::from(number), true);
        assert_eq!(got, RateCheck::Within(0));
        assert!(zone.len() <= 3);
    }
}
