//! Exact deadlines: the loop's own wait ends with the first of them, so that none is met more than
//! a millisecond late where the loop is idle. Those of the wheel may be met a slot late.
//!
//! A timer stands in the heap at most once, and setting it anew moves it there: one that is set for
//! every packet leaves nothing behind. Nothing here enters the kernel, and nothing allocates once
//! the lane has had as many timers as it has now.

use slab::Slab;

/// The most timers at a time: a process has no more open files than this (the kernel's default of
/// `fs.nr_open`), and a connection needs one timer. They take 32 MiB.
const TIMERS_MAX: usize = 1 << 20;

/// The place of a timer without a deadline.
const UNSET: u32 = u32::MAX;

const _: () = assert!(TIMERS_MAX < UNSET as usize);

/// A timer of a loop. Whoever has it removes it in the end.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a timer that is not removed is kept for ever"]
pub struct Timer(u32);

/// The timers of a loop, and a heap of those that have a deadline.
#[derive(Default)]
pub struct Deadlines {
    timers: Slab<TimerState>,
    /// A binary heap: no deadline is earlier than that of its parent, at `(place - 1) / 2`.
    heap: Vec<Deadline>,
}

struct TimerState {
    /// The token that is told of the deadline.
    token: u64,
    /// The place in the heap, or [`UNSET`].
    place: u32,
}

#[derive(Clone, Copy)]
struct Deadline {
    ends_ms: u64,
    timer: u32,
}

impl Deadlines {
    /// Adds a timer without a deadline, of which the token is told. `None`: there are too many.
    pub(super) fn add(&mut self, token: u64) -> Option<Timer> {
        if self.timers.len() >= TIMERS_MAX {
            return None;
        }
        let place = UNSET;
        Some(Timer(self.timers.insert(TimerState { token, place }) as u32))
    }

    /// Sets a timer's deadline, in the loop's milliseconds, instead of the one that it has.
    pub fn set(&mut self, timer: &Timer, ends_ms: u64) {
        let deadline = Deadline {
            ends_ms,
            timer: timer.0,
        };
        let place = match self.place(timer) {
            Some(place) => place,
            None => {
                self.heap.push(deadline);
                self.heap.len() - 1
            }
        };
        self.settle(place, deadline);
    }

    /// Takes a timer's deadline away, if it has one.
    pub fn clear(&mut self, timer: &Timer) {
        if let Some(place) = self.place(timer) {
            self.take(place);
        }
    }

    /// Removes a timer.
    pub fn remove(&mut self, timer: Timer) {
        self.clear(&timer);
        self.timers.try_remove(timer.0 as usize);
    }

    /// Whether no timer has a deadline.
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The number of deadlines.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The number of timers, those without a deadline among them.
    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn timers(&self) -> usize {
        self.timers.len()
    }

    /// How long the loop may wait for events, in milliseconds: no longer than `most_ms`.
    pub(super) fn sleep_ms(&self, most_ms: u64, now_ms: u64) -> u64 {
        let first = self.heap.first();
        first.map_or(most_ms, |first| {
            first.ends_ms.saturating_sub(now_ms).min(most_ms)
        })
    }

    /// Takes the first deadline away that has come, and returns its timer's token.
    pub(super) fn expire(&mut self, now_ms: u64) -> Option<u64> {
        let first = self.heap.first().filter(|first| first.ends_ms <= now_ms)?;
        let token = self.timers.get(first.timer as usize)?.token;
        self.take(0);
        Some(token)
    }

    fn place(&self, timer: &Timer) -> Option<usize> {
        let place = self.timers.get(timer.0 as usize)?.place;
        (place != UNSET).then_some(place as usize)
    }

    /// Takes the deadline at a place away; the last one takes the place.
    fn take(&mut self, place: usize) {
        let taken = self.heap.swap_remove(place);
        debug_assert_eq!(self.place(&Timer(taken.timer)), Some(place));
        self.note_place(taken.timer, UNSET);
        if let Some(moved) = self.heap.get(place).copied() {
            self.settle(place, moved);
        }
    }

    /// Puts a deadline where the heap's order wants it: at the place, which is free, or from there
    /// towards the root or the leaves.
    fn settle(&mut self, mut place: usize, deadline: Deadline) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].ends_ms <= deadline.ends_ms {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        while let Some(child) = self.earlier_child(place) {
            if self.heap[child].ends_ms >= deadline.ends_ms {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, deadline);
        debug_assert!(place == 0 || self.heap[(place - 1) / 2].ends_ms <= deadline.ends_ms);
    }

    /// The place of the earlier child.
    fn earlier_child(&self, place: usize) -> Option<usize> {
        let (left, right) = (2 * place + 1, 2 * place + 2);
        let left_ms = self.heap.get(left)?.ends_ms;
        let right_is_earlier = self
            .heap
            .get(right)
            .is_some_and(|right| right.ends_ms < left_ms);
        Some(if right_is_earlier { right } else { left })
    }

    fn put(&mut self, place: usize, deadline: Deadline) {
        self.heap[place] = deadline;
        self.note_place(deadline.timer, place as u32);
    }

    fn note_place(&mut self, timer: u32, place: u32) {
        if let Some(state) = self.timers.get_mut(timer as usize) {
            state.place = place;
        }
    }
}

#[cfg(test)]
mod tests;
