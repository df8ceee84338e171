//! Rates as nginx counts them.

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
