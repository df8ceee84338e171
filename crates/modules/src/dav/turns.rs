//! Turns of requests that change the same file: between the judgement of a request's conditions and
//! its change, no other request changes the file, so that of two clients that have read the same
//! state only one replaces it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

/// Files that are being changed. A request waits for no other file than its own.
static TURNS: LazyLock<Turns> = LazyLock::new(Turns::default);

#[derive(Default)]
struct Turns {
    taken: Mutex<HashSet<PathBuf>>,
    given_back: Condvar,
}

/// A turn: it ends when dropped.
pub(super) struct Turn {
    paths: Vec<PathBuf>,
}

/// Waits for the turn to change these files.
pub(super) fn take<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Turn {
    // `/a//b` and `/a/./b` are one file.
    let paths = paths.into_iter().map(|path| path.components().collect());
    let paths: Vec<PathBuf> = paths.collect();
    let mut taken = TURNS.lock();
    // All at once, so that no two requests wait for each other.
    while paths.iter().any(|path| taken.contains(path)) {
        taken = TURNS
            .given_back
            .wait(taken)
            .unwrap_or_else(PoisonError::into_inner);
    }
    taken.extend(paths.iter().cloned());
    Turn { paths }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = TURNS.lock();
        for path in &self.paths {
            taken.remove(path);
        }
        drop(taken);
        TURNS.given_back.notify_all();
    }
}
