//! Rates as nginx counts them, and the size of buffers.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use turnpike_conf::{MemoryLoader, Registry, View};

use super::buffer_size;
use super::direction_limit::{DirectionLimit, Room};

#[test]
fn a_seconds_worth_is_free_at_the_beginning_of_each_second() {
    let limit = DirectionLimit {
        bytes_per_second: 1000,
        started_ms: 5_000,
    };
    for (now_ms, read, expected) in [
        (5_000, 0, Room::Bytes(1000)),
        (5_000, 400, Room::Bytes(600)),
        (5_999, 1000, Room::Pause(1)),
        (5_000, 1500, Room::Pause(501)),
        (6_000, 1500, Room::Bytes(500)),
        (60_000, 1500, Room::Bytes(16_384)),
    ] {
        assert_eq!(
            limit.room(now_ms, read, 16_384),
            expected,
            "{now_ms} {read}"
        );
    }
    assert_eq!(limit.pause_ms(500), 500);
    let unlimited = DirectionLimit {
        bytes_per_second: 0,
        started_ms: 0,
    };
    assert_eq!(unlimited.room(0, u64::MAX, 10), Room::Bytes(10));
    assert_eq!(unlimited.pause_ms(1 << 20), 0);
}

#[test]
fn the_nearest_of_three_names_gives_the_size_of_buffers() {
    let families = [
        ("stream", turnpike_stream::rows::ROWS),
        ("proxy", super::rows::ROWS),
    ];
    let registry = Registry::new(&families, &[]);
    for (around, inside, expected) in [
        ("", "", 16 * 1024),
        ("proxy_upstream_buffer 1k;", "", 1024),
        ("proxy_buffer_size 1k;", "proxy_downstream_buffer 2k;", 2048),
        ("proxy_upstream_buffer 1k;", "proxy_buffer_size 3k;", 3072),
        ("", "proxy_upstream_buffer 0;", 1),
    ] {
        let text = format!("stream {{ {around} server {{ {inside} }} }}");
        let loader: MemoryLoader = [("/c", text.into_bytes())].into_iter().collect();
        let (_, scope) = registry.load(&loader, Path::new("/c"), None).unwrap();
        let stream = View::root(&scope).children("stream").next().unwrap();
        let server = stream.children("server").next().unwrap();
        assert_eq!(buffer_size::in_force(server), expected, "{around} {inside}");
    }
}
