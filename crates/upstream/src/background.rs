//! Periodic work on groups that belongs to no request: repeated name lookups, active checks.
//!
//! This work does not run on a lane, since a lane enters its runtime only while it serves a waiting
//! request, and a busy lane must not delay the checks of a peer.

use std::pin::Pin;
use std::sync::Arc;

/// A task, for a thread with tokio's runtime and a `LocalSet`.
pub trait BackgroundTask: Send + Sync {
    /// The work, which may never end; dropping it at a wait stops it.
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}
