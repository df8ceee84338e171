//! The requests of a group that wait for a peer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The limits of a group's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The most requests that wait at the same time.
    pub requests_max: usize,
    /// The longest wait of a request.
    pub timeout_ms: u64,
}

/// Why a request cannot wait for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unqueued {
    /// The group has no queue.
    NoQueue,
    /// As many requests as may wait already.
    Full,
}

impl fmt::Display for Unqueued {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Unqueued::NoQueue => "no live upstreams",
            Unqueued::Full => "upstream queue is full",
        })
    }
}

impl std::error::Error for Unqueued {}

/// The requests that wait, in the order in which they came, of all lanes.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Arc<Notify>>>,
    /// The length of the queue, to be read without the lock.
    length: AtomicUsize,
    /// The requests that were refused since the queue was full.
    refused: AtomicU64,
}

impl Queue {
    /// A place at the end.
    ///
    /// # Errors
    /// There are `requests_max` already.
    pub(crate) fn enter(self: &Arc<Self>, requests_max: usize) -> Result<Place, Unqueued> {
        let mut waiting = self.waiting();
        if waiting.len() >= requests_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Unqueued::Full);
        }
        let wake = Arc::new(Notify::new());
        waiting.push_back(Arc::clone(&wake));
        self.length.store(waiting.len(), Ordering::Relaxed);
        // The request looks for room once more after this, and one that ends looks at the length
        // after it made room. Each stores first and reads what the other stores: without a fence
        // on both sides both could read the old value, and nobody would wake the request.
        fence(Ordering::SeqCst);
        Ok(Place {
            queue: Arc::clone(self),
            wake,
        })
    }

    /// Wakes the first request: a peer may have room now.
    pub(crate) fn wake(&self) {
        // The other half of the one in `enter`: the room was made before the length is read.
        fence(Ordering::SeqCst);
        if self.length() > 0
            && let Some(first) = self.waiting().front()
        {
            first.notify_one();
        }
    }

    /// The number of requests that wait.
    pub(crate) fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// The number of requests that found the queue full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's place in a queue, left when this is dropped.
pub(crate) struct Place {
    queue: Arc<Queue>,
    wake: Arc<Notify>,
}

impl Place {
    /// Whether no other request came before.
    pub(crate) fn is_first(&self) -> bool {
        let waiting = self.queue.waiting();
        let first = waiting.front();
        first.is_some_and(|first| Arc::ptr_eq(first, &self.wake))
    }

    /// Waits until the request is first and a peer may have room. A wake-up that came before is
    /// kept.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting();
        waiting.retain(|other| !Arc::ptr_eq(other, &self.wake));
        self.queue.length.store(waiting.len(), Ordering::Relaxed);
        // A peer may have room for more than one, and a wake-up must not be lost with its owner.
        if let Some(first) = waiting.front() {
            first.notify_one();
        }
    }
}
