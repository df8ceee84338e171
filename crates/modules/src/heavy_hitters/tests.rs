//! Tests of the sketch.

use std::collections::HashMap;

use super::sketch::{Figures, KEY_BYTES_MAX, KEYS_MAX, Recent, WINDOW_MS};

fn request(time_ms: u64) -> Figures {
    Figures {
        requests: 1,
        time_ms,
        slowest_ms: time_ms,
        server_errors: 0,
    }
}

fn read(recent: &mut Recent, now_ms: u64) -> HashMap<Vec<u8>, Figures> {
    let mut sums = HashMap::new();
    recent.read(now_ms, &mut sums);
    sums
}

#[test]
fn heavy_keys_stay_among_many_light_ones() {
    let mut recent = Recent::default();
    for number in 0..100_000_u64 {
        recent.add(0, format!("/light/{number}").as_bytes(), request(0));
        if number % 50 == 0 {
            recent.add(0, b"/slow", request(20 + number % 7));
        }
        if number % 10 == 0 {
            recent.add(0, b"/often", request(3));
        }
    }
    let found = read(&mut recent, 0);
    assert!(found.len() <= KEYS_MAX);
    let slow = found[&b"/slow"[..]];
    assert_eq!((slow.requests, slow.slowest_ms), (2_000, 26));
    assert_eq!(found[&b"/often"[..]].time_ms, 30_000);
}

#[test]
fn figures_are_of_the_window_under_way_and_the_one_before() {
    let mut recent = Recent::default();
    recent.add(5, b"a", request(1));
    recent.add(WINDOW_MS, b"a", request(5));
    recent.add(WINDOW_MS, b"b", request(2));
    let found = read(&mut recent, 2 * WINDOW_MS - 1);
    let both = Figures {
        requests: 2,
        time_ms: 6,
        slowest_ms: 5,
        server_errors: 0,
    };
    assert_eq!(found[&b"a"[..]], both);
    // A lane's clock may be a little late.
    recent.add(WINDOW_MS - 1, b"b", request(2));
    let found = read(&mut recent, 2 * WINDOW_MS);
    assert_eq!(found[&b"a"[..]], request(5));
    assert_eq!(found[&b"b"[..]].requests, 2);
    assert!(read(&mut recent, 4 * WINDOW_MS).is_empty());
}

#[test]
fn long_keys_are_cut() {
    let mut recent = Recent::default();
    let long = vec![b'x'; 10_000];
    recent.add(0, &long, request(1));
    recent.add(0, &long[..9_000], request(1));
    let found = read(&mut recent, 0);
    assert_eq!(found[&long[..KEY_BYTES_MAX]].requests, 2);
}
