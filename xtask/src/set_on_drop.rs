//! A flag that is set at the end of a scope, however it ends.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped. Threads of a scope that run until the flag is set end after a
/// panic too; otherwise the scope would wait for them for ever.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
