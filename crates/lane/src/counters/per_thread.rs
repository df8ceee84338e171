//! Counts that many threads add to: each has cells of its own, so that none waits for another's
//! cache line, and adding takes no locked instruction.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Threads with cells of their own; those beyond share cells under a lock. A lane for each CPU of a
/// large machine has its own, and the places take one kilobyte of what was counted at all.
const THREADS_MAX: usize = 64;

/// Cells of each thread. Of what nothing is counted, there are none.
pub struct PerThread<T>(OnceLock<Box<Places<T>>>);

struct Places<T> {
    /// By the threads' numbers.
    own: [OnceLock<Box<Line<T>>>; THREADS_MAX],
    others: T,
    /// Held while `others` are written.
    writing: Mutex<()>,
}

/// Cells on cache lines of their own; processors fetch two at a time.
#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: Default> PerThread<T> {
    /// Calls `add` with cells that only this thread writes meanwhile.
    pub fn write(&self, add: impl FnOnce(&T)) {
        let places = self.0.get_or_init(|| Box::new(Places::new()));
        match NUMBER.try_with(|number| number.0) {
            Ok(number) if number < THREADS_MAX => {
                add(&places.own[number].get_or_init(Box::default).0);
            }
            _ => {
                let _writing = places
                    .writing
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                add(&places.others);
            }
        }
    }

    /// The sum of a count over the cells of all threads.
    pub fn sum(&self, count: impl Fn(&T) -> u64) -> u64 {
        let Some(places) = self.0.get() else {
            return 0;
        };
        let own = places.own.iter().filter_map(OnceLock::get);
        let cells = own.map(|line| &line.0).chain([&places.others]);
        cells.map(count).fold(0, u64::wrapping_add)
    }
}

impl<T: Default> Places<T> {
    fn new() -> Self {
        Self {
            own: [const { OnceLock::new() }; THREADS_MAX],
            others: T::default(),
            writing: Mutex::default(),
        }
    }
}

/// The number of a thread that counts: the least that no other thread has. The next thread that
/// has it goes on with the cells.
struct Number(usize);

thread_local! {
    static NUMBER: Number = Number(numbers().take());
}

/// Numbers that threads have given back, and the first that none has had.
#[derive(Default)]
struct Numbers {
    free: BTreeSet<usize>,
    next: usize,
}

impl Numbers {
    fn take(&mut self) -> usize {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

fn numbers() -> std::sync::MutexGuard<'static, Numbers> {
    static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
        free: BTreeSet::new(),
        next: 0,
    });
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Number {
    fn drop(&mut self) {
        numbers().free.insert(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::{PerThread, THREADS_MAX};
    use crate::counters::Counter;

    const IN_TURN: usize = 4 * THREADS_MAX;
    const AT_ONCE: usize = THREADS_MAX + 8;

    /// One test: in two at once, threads would have each other's numbers.
    #[test]
    fn no_count_is_lost_as_threads_come_and_go() {
        let counts = PerThread::<Counter>::default();
        assert_eq!(counts.sum(Counter::value), 0);
        for _ in 0..IN_TURN {
            thread::scope(|scope| {
                scope.spawn(|| counts.write(Counter::add));
            });
        }
        let places = counts.0.get().expect("there is a count");
        assert_eq!(places.others.value(), 0, "numbers are used again");
        let all_there = Barrier::new(AT_ONCE);
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    counts.write(Counter::add);
                    all_there.wait();
                    (0..99).for_each(|_| counts.write(Counter::add));
                });
            }
        });
        assert!(places.others.value() >= 8 * 100);
        let all = IN_TURN + 100 * AT_ONCE;
        assert_eq!(counts.sum(Counter::value), all as u64);
    }
}
