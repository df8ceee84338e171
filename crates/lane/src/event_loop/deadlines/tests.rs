//! Tables of timers that are set, set anew, cleared and removed.

#![allow(clippy::unwrap_used)]

use super::*;

/// What is done with the timer of a number.
enum Act {
    Set(usize, u64),
    Clear(usize),
    Remove(usize),
}
use Act::{Clear, Remove, Set};

/// What is done, the time, and the timers that are told then, the earliest first.
const CASES: &[(&[Act], u64, &[u64])] = &[
    (&[], 100, &[]),
    (&[Set(0, 8), Set(1, 10), Set(2, 9)], 7, &[]),
    (&[Set(0, 8), Set(1, 10), Set(2, 9)], 9, &[0, 2]),
    (&[Set(0, 8), Set(1, 10), Set(2, 9)], 10, &[0, 2, 1]),
    // Set anew, later and earlier: told once, at the last time.
    (&[Set(0, 8), Set(1, 10), Set(0, 20)], 19, &[1]),
    (&[Set(0, 8), Set(1, 10), Set(0, 20)], 20, &[1, 0]),
    (&[Set(0, 30), Set(1, 10), Set(0, 5)], 10, &[0, 1]),
    // Cleared and removed: not told, wherever they stood.
    (&[Set(0, 1), Set(1, 2), Set(2, 3), Clear(0)], 9, &[1, 2]),
    (&[Set(0, 1), Set(1, 2), Set(2, 3), Remove(1)], 9, &[0, 2]),
    (&[Set(0, 1), Set(1, 2), Set(2, 3), Remove(2)], 9, &[0, 1]),
    (&[Set(0, 1), Clear(0), Clear(0)], 9, &[]),
    (&[Set(0, 1), Clear(0), Set(0, 4)], 9, &[0]),
    (&[Remove(0), Set(1, 0)], 0, &[1]),
];

/// The deadlines after these acts, and what is left of three timers.
fn after(acts: &[Act]) -> (Deadlines, Vec<Option<Timer>>) {
    let mut deadlines = Deadlines::default();
    let mut timers: Vec<_> = (0..3).map(|number| deadlines.add(number)).collect();
    for act in acts {
        match *act {
            Set(number, ends_ms) => deadlines.set(timers[number].as_ref().unwrap(), ends_ms),
            Clear(number) => deadlines.clear(timers[number].as_ref().unwrap()),
            Remove(number) => deadlines.remove(timers[number].take().unwrap()),
        }
    }
    (deadlines, timers)
}

#[test]
fn timers_are_told_once_and_in_the_order_of_their_deadlines() {
    for (number, (acts, now_ms, told)) in CASES.iter().enumerate() {
        let (mut deadlines, timers) = after(acts);
        let before = deadlines.len();
        let expired: Vec<_> = std::iter::from_fn(|| deadlines.expire(*now_ms)).collect();
        assert_eq!(expired, *told, "case {number}");
        assert_eq!(deadlines.len(), before - told.len(), "case {number}");
        // Nothing is left of those that are removed.
        for timer in timers.into_iter().flatten() {
            deadlines.remove(timer);
        }
        let left = (deadlines.len(), deadlines.timers());
        assert_eq!(left, (0, 0), "case {number}");
    }
}

#[test]
fn the_loop_sleeps_until_the_first_deadline_and_no_longer_than_it_may() {
    for (acts, now_ms, sleep_ms) in [
        (&[][..], 0, 100),
        (&[Set(0, 8), Set(1, 10)], 0, 8),
        (&[Set(0, 8), Set(1, 10)], 20, 0),
        (&[Set(0, 8), Set(1, 10), Clear(0)], 3, 7),
        (&[Set(0, 1_000)], 0, 100),
    ] {
        let (deadlines, _) = after(acts);
        assert_eq!(deadlines.sleep_ms(100, now_ms), sleep_ms);
    }
}

/// Every order of many acts: what a sorted list says of them is what the heap says.
#[test]
fn the_heap_agrees_with_a_sorted_list() {
    let mut deadlines = Deadlines::default();
    let timers: Vec<Timer> = (0..64)
        .map(|number| deadlines.add(number).unwrap())
        .collect();
    let mut list = [None; 64];
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for round in 0..20_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (number, ends_ms) = ((random >> 33) as usize % 64, random >> 54);
        if round % 3 == 0 {
            deadlines.clear(&timers[number]);
            list[number] = None;
        } else {
            deadlines.set(&timers[number], ends_ms);
            list[number] = Some(ends_ms);
        }
        let first_ms = list.iter().flatten().min().copied();
        assert_eq!(
            deadlines.sleep_ms(u64::MAX, 0),
            first_ms.unwrap_or(u64::MAX)
        );
        assert_eq!(deadlines.len(), list.iter().flatten().count());
        if round % 7 == 0
            && let Some(first_ms) = first_ms
        {
            let told = deadlines.expire(first_ms).unwrap() as usize;
            assert_eq!(list[told].take(), Some(first_ms));
        }
    }
    // However often they were set, they take the room of one deadline each.
    assert!(deadlines.heap.capacity() <= 64 && deadlines.timers.capacity() <= 64);
}

#[test]
fn more_timers_than_connections_are_refused() {
    let mut deadlines = Deadlines::default();
    let first = deadlines.add(0).unwrap();
    while deadlines.timers() < TIMERS_MAX {
        assert!(deadlines.add(0).is_some());
    }
    assert_eq!(deadlines.add(0), None);
    deadlines.remove(first);
    assert!(deadlines.add(0).is_some());
}
