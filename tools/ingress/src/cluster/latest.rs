//! A place for the newest of several values: what waits is never more than one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The place; one that nobody has taken from is written over.
pub(super) struct Latest<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    value: Option<T>,
    is_closed: bool,
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    /// None came in time.
    Yet,
    /// None will come.
    More,
}

impl<T> Latest<T> {
    /// An empty place.
    pub(super) fn new() -> Latest<T> {
        Latest {
            state: Mutex::new(State {
                value: None,
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Puts a value there.
    pub(super) fn put(&self, value: T) {
        self.state().value = Some(value);
        self.changed.notify_one();
    }

    /// Says that no value will come any more.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Takes the value, or waits for one as long as this.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn take(&self, longest: Option<Duration>) -> Result<T, Nothing> {
        let until = longest.map(|longest| Instant::now() + longest);
        let mut state = self.state();
        loop {
            if let Some(value) = state.value.take() {
                return Ok(value);
            }
            if state.is_closed {
                return Err(Nothing::More);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => return Err(Nothing::Yet),
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.changed.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// The state; a value is put and taken as a whole, so a panic elsewhere leaves none in parts.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
