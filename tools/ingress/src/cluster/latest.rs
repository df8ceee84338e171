//! A place for the newest of several values: what waits is never more than one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The place; one that nobody has taken from is written over.
pub(super) struct Latest<T> {
    value: Mutex<Option<T>>,
    changed: Condvar,
}

impl<T> Latest<T> {
    /// An empty place.
    pub(super) fn new() -> Latest<T> {
        Latest {
            value: Mutex::new(None),
            changed: Condvar::new(),
        }
    }

    /// Puts a value there.
    pub(super) fn put(&self, value: T) {
        *self.value() = Some(value);
        self.changed.notify_one();
    }

    /// Takes the value, or waits for one, as long as this; none if none came.
    pub(super) fn take(&self, longest: Option<Duration>) -> Option<T> {
        let until = longest.map(|longest| Instant::now() + longest);
        let mut value = self.value();
        loop {
            if value.is_some() {
                return value.take();
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            value = match left {
                Some(left) if left.is_zero() => return None,
                Some(left) => {
                    let waited = self.changed.wait_timeout(value, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.changed.wait(value);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// The value; it is put and taken as a whole, so a panic elsewhere leaves none in parts.
    fn value(&self) -> MutexGuard<'_, Option<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
