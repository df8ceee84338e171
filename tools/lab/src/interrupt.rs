//! Ctrl-C: processes are stopped in order, and results are kept. A second one is not needed, since
//! every wait of the lab checks for it many times a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::error::LabError;

static ASKED: AtomicBool = AtomicBool::new(false);

/// The pause between two checks while waiting.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Records SIGINT and SIGTERM from now on. It must be called before any thread is started.
pub fn watch() {
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

/// Whether the user wants to stop, since [`watch`].
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Checks whether the user wants to stop.
///
/// # Errors
/// The user wants to stop.
pub(crate) fn check() -> Result<(), LabError> {
    if ASKED.load(Ordering::Relaxed) {
        Err(LabError::Interrupted)
    } else {
        Ok(())
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
