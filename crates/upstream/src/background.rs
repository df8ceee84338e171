//! Work on groups that goes by time and belongs to no request: names that are looked up again,
//! active checks.
//!
//! It does not run on a lane, since a lane enters its runtime only while it serves something that
//! waits, and a peer that hangs must not be looked at later because a lane is busy.

use std::pin::Pin;
use std::sync::Arc;

/// A piece of such work, for a thread with tokio's runtime and a `LocalSet`.
pub trait BackgroundTask: Send + Sync {
    /// The work, which may go on for ever; it is dropped where it waits when it has to stop.
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}
