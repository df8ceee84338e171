//! Limits of what a driven connection waits for.

use std::future::Future;
use std::io;
use std::time::Duration;

/// Bounds a wait by `timeout_ms`; 0 waits for ever, as nginx's time-outs do.
///
/// # Errors
/// What the wait says; `TimedOut` after `timeout_ms`.
pub async fn within<T>(
    timeout_ms: u64,
    wait: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    if timeout_ms == 0 {
        return wait.await;
    }
    match tokio::time::timeout(Duration::from_millis(timeout_ms), wait).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
