#![allow(clippy::unwrap_used)]

use super::memory::{KEY_BYTES_MAX, Memory, NoRoom, Sizes, WhenFull};
use super::mode::{Mode, State, leading_number};

const COLLECTED: WhenFull = WhenFull {
    expire: false,
    discard_key: None,
};

fn mode(words: &str) -> Result<Mode, String> {
    Mode::read(&words.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn values_are_read_as_angie_reads_them() {
    for (text, expected) in [
        ("", 0.0),
        ("0", 0.0),
        ("12", 12.0),
        ("-3.5", -3.5),
        ("+.5x", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1e", 1.0),
        ("1e+", 1.0),
        ("2e-1, 7", 0.2),
        ("  7 ms", 7.0),
        ("ms", 1.0),
        (".", 1.0),
        ("-", 1.0),
        (" ", 1.0),
        ("1e999", f64::MAX),
        ("-1e999", f64::MIN),
        // Not as Angie: a client must not be able to spoil a sum for ever.
        ("inf", 1.0),
        ("nan", 1.0),
        ("0x10", 0.0),
    ] {
        assert_eq!(leading_number(text.as_bytes()), expected, "{text}");
    }
    let long = "1".repeat(300);
    assert_eq!(
        leading_number(long.as_bytes()),
        long[..255].parse::<f64>().unwrap()
    );
}

/// Modes, the values that they are given a second apart, and what variables show of them at the
/// time of the last one.
const MODES: &[(&str, &[f64], &str)] = &[
    ("count", &[5.0, -1.0, 0.1], "3"),
    ("min", &[5.0, -1.0, 0.1], "-1"),
    ("max", &[5.0, -1.0, 6.5], "6.5"),
    ("last", &[5.0, -1.0, 0.25], "0.25"),
    ("gauge", &[5.0, -1.0, 0.5], "4.5"),
    ("gauge", &[f64::MAX, f64::MAX, -1.0], HUGE),
    ("average mean", &[1.0, 2.0, 6.0], "3"),
    ("average mean count=2", &[1.0, 2.0, 6.0], "4"),
    ("average mean count=1 window=off", &[1.0, 2.0], "2"),
    ("average mean window=2s", &[1.0, 2.0, 6.0], "4"),
    ("average mean window=1500ms count=1", &[1.0, 2.0, 6.0], "6"),
    ("average exp", &[10.0, 20.0], "19"),
    ("average exp factor=0", &[10.0, 20.0], "10"),
    ("average exp factor=50", &[10.0, 20.0, 25.0], "20"),
    ("histogram 1 5 10", &[0.0, 348.0, -3.0, 5.0], "2 3 3"),
    ("histogram inf 0.1 2", &[0.1, 1.0, 9.0], "3 1 2"),
];

/// The greatest number, as it is shown.
const HUGE: &str = "\
    17976931348623157000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000000000000000000000\
    000000000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn every_mode_makes_of_values_what_it_says() {
    for (words, values, expected) in MODES {
        let mode = mode(words).unwrap();
        let mut now_ms = 1_000_000;
        let mut state = mode.begin(values[0], now_ms);
        for value in &values[1..] {
            now_ms += 1000;
            mode.update(&mut state, *value, now_ms);
        }
        let mut shown = Vec::new();
        mode.append(&state, now_ms, &mut shown);
        assert_eq!(String::from_utf8(shown).unwrap(), *expected, "{words}");
    }
}

#[test]
fn a_mean_in_a_window_is_0_once_all_its_values_are_old() {
    let mode = mode("average mean window=1s").unwrap();
    let state = mode.begin(7.0, 5000);
    for (now_ms, expected) in [(5000, 7.0), (5999, 7.0), (6000, 0.0), (4000, 7.0)] {
        assert_eq!(mode.number(&state, now_ms), Some(expected), "{now_ms}");
    }
}

#[test]
fn states_merge_as_if_one_key_had_had_the_values() {
    for (words, expected) in [
        ("count", State::Count(2)),
        ("min", State::Number(2.0)),
        ("max", State::Number(8.0)),
        ("last", State::Number(2.0)),
        ("gauge", State::Number(10.0)),
        ("average exp factor=50", State::Number(5.0)),
        (
            "average mean",
            State::Values([(8.0, 1), (2.0, 2)].into_iter().collect()),
        ),
        (
            "average mean count=1",
            State::Values([(2.0, 2)].into_iter().collect()),
        ),
        (
            "histogram 4 9",
            State::Buckets {
                counts: vec![1, 2],
                count: 2,
                sum: Some(10.0),
            },
        ),
    ] {
        let mode = mode(words).unwrap();
        let mut state = mode.begin(8.0, 1);
        mode.merge(&mut state, &mode.begin(2.0, 2));
        assert_eq!(state, expected, "{words}");
    }
}

#[test]
fn a_sum_that_may_fall_is_not_shown() {
    for (words, values, expected) in [
        ("histogram 1 2", &[1.0, 2.5][..], Some(3.5)),
        ("histogram 1 2", &[0.0, -1.0, 5.0], None),
        ("histogram -1 2", &[1.0], None),
    ] {
        let mode = mode(words).unwrap();
        let mut state = mode.begin(values[0], 0);
        for value in &values[1..] {
            mode.update(&mut state, *value, 0);
        }
        let State::Buckets { sum, .. } = state else {
            panic!("{words}");
        };
        assert_eq!(sum, expected, "{words}");
    }
}

fn zone(bytes: u64, words: &str) -> Memory {
    let modes = vec![mode(words).unwrap()];
    Memory::new(Sizes::new(bytes, &modes).unwrap(), modes)
}

/// Fills a zone with the keys `0`, `1`, ... until one finds no room; gives their number.
fn fill(zone: &Memory, when_full: &WhenFull) -> usize {
    (0..)
        .find(|number: &usize| {
            zone.update(number.to_string().as_bytes(), 1.0, 0, when_full)
                .is_err()
                || zone.discarded() > 0
        })
        .unwrap()
}

#[test]
fn a_full_zone_discards_new_keys_or_the_oldest_ones() {
    let refusing = zone(32_768, "count");
    // 128 bytes a key, as in Angie.
    assert_eq!(fill(&refusing, &COLLECTED), 256);
    assert_eq!(refusing.update(b"0", 1.0, 0, &COLLECTED), Ok(()));
    assert_eq!(refusing.update(b"new", 1.0, 0, &COLLECTED), Err(NoRoom));
    assert_eq!(refusing.discarded(), 2);
    assert_eq!(refusing.read(&COLLECTED).len(), 256);

    let collecting = zone(32_768, "count");
    let when_full = WhenFull {
        expire: false,
        discard_key: Some(b"others".to_vec()),
    };
    assert_eq!(fill(&collecting, &when_full), 256);
    assert_eq!(collecting.update(b"new", 1.0, 0, &when_full), Ok(()));
    assert_eq!(collecting.read(&when_full)["others"][0], State::Count(2));

    let expiring = zone(32_768, "count");
    let when_full = WhenFull {
        expire: true,
        discard_key: Some(b"others".to_vec()),
    };
    assert_eq!(fill(&expiring, &when_full), 256);
    // The key `0` made room for `256`; `1` is used, so that `2` is the oldest.
    assert_eq!(expiring.update(b"1", 1.0, 0, &when_full), Ok(()));
    let long = vec![b'k'; KEY_BYTES_MAX];
    assert_eq!(expiring.update(&long, 1.0, 0, &when_full), Ok(()));
    let shown = expiring.read(&when_full);
    for (key, is_there) in [("0", false), ("1", true), ("2", false), ("5", true)] {
        assert_eq!(shown.contains_key(key), is_there, "{key}");
    }
    assert!(shown.contains_key(&("k".repeat(KEY_BYTES_MAX) + "...")));
    // A long key took the place of three short ones, of which the first was discarded before.
    assert_eq!(shown["others"][0], State::Count(4));
    assert_eq!(expiring.discarded(), 4);
}

#[test]
fn keys_that_look_alike_are_shown_as_one() {
    let zone = zone(32_768, "count");
    for key in [&b"a\xFF"[..], b"a\xFE", "a\u{FFFD}".as_bytes()] {
        zone.update(key, 1.0, 0, &COLLECTED).unwrap();
    }
    let shown = zone.read(&COLLECTED);
    assert_eq!(shown.len(), 1);
    assert_eq!(shown["a\u{FFFD}"][0], State::Count(3));
}

#[test]
fn a_zone_of_16_parts_holds_what_its_size_says() {
    let zone = zone(16 << 20, "gauge");
    for number in 0..50_000 {
        let key = format!("key {number}");
        zone.update(key.as_bytes(), 2.0, 0, &COLLECTED).unwrap();
    }
    let shown = zone.read(&COLLECTED);
    assert_eq!(shown.len(), 50_000);
    assert!(shown.values().all(|states| states[0] == State::Number(2.0)));
}

#[test]
fn a_zone_has_room_for_the_longest_key() {
    for (bytes, words, fits) in [
        (32_768, "count", true),
        (32_768, "average mean count=3000", true),
        (32_768, "average mean count=3000 window=1s", false),
        (32_768, "average mean count=5000", false),
        (1 << 40, "average mean count=9223372036854775807", false),
    ] {
        let modes = [mode(words).unwrap()];
        assert_eq!(Sizes::new(bytes, &modes).is_some(), fits, "{words}");
    }
}
