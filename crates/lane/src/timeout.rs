//! Time limits for driven connections.

use std::future::Future;
use std::io;
use std::time::Duration;

/// Limits a wait to `timeout_ms`; 0 waits without limit, as nginx's time-outs do. `None` after the
/// time-out.
pub async fn bounded<T>(timeout_ms: u64, wait: impl Future<Output = T>) -> Option<T> {
    match timeout_ms {
        0 => Some(wait.await),
        _ => tokio::time::timeout(Duration::from_millis(timeout_ms), wait)
            .await
            .ok(),
    }
}

/// The same for a wait that can fail.
///
/// # Errors
/// The error of the wait; `TimedOut` after `timeout_ms`.
pub async fn within<T>(
    timeout_ms: u64,
    wait: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let waited = bounded(timeout_ms, wait).await;
    waited.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}
