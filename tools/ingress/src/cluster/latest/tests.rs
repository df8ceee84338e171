#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use super::Latest;

#[test]
fn only_the_newest_value_waits() {
    let place = Latest::new();
    assert_eq!(place.take(Some(Duration::ZERO)), None);
    for value in 0..100 {
        place.put(value);
    }
    assert_eq!(place.take(None), Some(99));
    assert_eq!(place.take(Some(Duration::ZERO)), None);
}

#[test]
fn a_taker_is_woken_by_a_value() {
    let place = Arc::new(Latest::new());
    let other = Arc::clone(&place);
    let taker = std::thread::spawn(move || other.take(None));
    place.put(1);
    assert_eq!(taker.join().unwrap(), Some(1));
}
