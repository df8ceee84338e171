#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use super::{Latest, Nothing};

#[test]
fn only_the_newest_value_waits() {
    let place = Latest::new();
    assert_eq!(place.take(Some(Duration::ZERO)), Err(Nothing::Yet));
    for value in 0..100 {
        place.put(value);
    }
    assert_eq!(place.take(None), Ok(99));
    assert_eq!(place.take(Some(Duration::ZERO)), Err(Nothing::Yet));
}

#[test]
fn a_taker_is_woken_by_a_value_and_by_the_end() {
    let place = Arc::new(Latest::new());
    let other = Arc::clone(&place);
    let taker = std::thread::spawn(move || (other.take(None), other.take(None)));
    place.put(1);
    while place.state().value.is_some() {
        std::thread::yield_now();
    }
    place.close();
    assert_eq!(taker.join().unwrap(), (Ok(1), Err(Nothing::More)));
}
