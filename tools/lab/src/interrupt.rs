//! Ctrl-C: whatever runs is stopped in order, and what is done is kept. A second one is not needed,
//! since every wait of the lab looks here many times a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::error::LabError;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Between two looks while waiting.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// From now on SIGINT and SIGTERM are noted. To be called before any thread is started.
pub(crate) fn watch() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            ASKED.store(true, Ordering::Relaxed);
        }
    });
}

/// Whether the user wants to stop.
///
/// # Errors
/// He does.
pub(crate) fn check() -> Result<(), LabError> {
    match ASKED.load(Ordering::Relaxed) {
        true => Err(LabError::Interrupted),
        false => Ok(()),
    }
}

/// Waits until this moment.
///
/// # Errors
/// Ctrl-C came first.
pub(crate) fn wait_until(end: Instant) -> Result<(), LabError> {
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(LOOK_INTERVAL));
    }
}
