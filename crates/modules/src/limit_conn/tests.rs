use std::sync::Arc;

use super::zone::{Admission, CountZone, Guard};

fn within(answer: Admission) -> Option<Guard> {
    match answer {
        Admission::Within(guard) => Some(guard),
        Admission::Above | Admission::NoRoom => None,
    }
}

#[test]
fn counts_while_guards_live() {
    let zone = Arc::new(CountZone::new(65_536));
    let first = within(zone.count(b"a", 2));
    let second = within(zone.count(b"a", 2));
    assert!(first.is_some() && second.is_some());
    assert!(matches!(zone.count(b"a", 2), Admission::Above));
    assert!(within(zone.count(b"b", 2)).is_some());
    drop(first);
    let third = within(zone.count(b"a", 2));
    assert!(third.is_some());
    drop((second, third));
    assert!(within(zone.count(b"a", 1)).is_some());
}

#[test]
fn a_full_zone_takes_no_more_keys() {
    let zone = Arc::new(CountZone::new(128));
    let guards = (within(zone.count(b"a", 1)), within(zone.count(b"b", 1)));
    assert!(matches!(zone.count(b"c", 1), Admission::NoRoom));
    drop(guards);
    assert!(within(zone.count(b"c", 1)).is_some());
}
