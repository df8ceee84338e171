//! What the lane's event loop has seen of a driven connection's socket.
//!
//! A driven connection keeps its registration with the lane's epoll instance, edge-triggered as
//! while it was parked: registering it with the runtime for the time of one exchange, and back
//! again, would cost four system calls. The loop notes events here, and wakes the future.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::sync::Notify;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::turns;

use crate::counters::CloseReason;

/// Why a connection is to close, whatever it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// An operator has closed its request.
    Commanded,
    /// `worker_shutdown_timeout` has passed.
    Cut,
    /// The place is needed, and the client does not move its request.
    MakesRoom,
}

impl Why {
    /// The reason for the counters.
    pub(crate) fn reason(self) -> CloseReason {
        match self {
            Self::Commanded => CloseReason::Commanded,
            Self::Cut => CloseReason::ShutdownTimeout,
            Self::MakesRoom => CloseReason::MadeRoom,
        }
    }
}

/// Readiness of one socket for reading; shared by the loop and one future.
#[derive(Default)]
pub(crate) struct Watch {
    readable: Cell<bool>,
    ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    closing: Notify,
    why: Cell<Option<Why>>,
    /// See [`Watch::full_since_ms`].
    full_since_ms: Cell<Option<u64>>,
    accepted_ms: u64,
}

impl Watch {
    /// Nothing is known yet to be readable, of a connection that was accepted at that time, in the
    /// lane's monotonic milliseconds.
    pub(crate) fn new(accepted_ms: u64) -> Rc<Self> {
        Rc::new(Self {
            accepted_ms,
            ..Self::default()
        })
    }

    /// When the connection was accepted, in the lane's monotonic milliseconds.
    pub(crate) fn accepted_ms(&self) -> u64 {
        self.accepted_ms
    }

    /// Something came; `ended`: the peer has sent its last, or the connection broke.
    pub(crate) fn event(&self, ended: bool) {
        self.readable.set(true);
        if ended {
            self.ended.set(true);
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Has the future close the connection, whatever it waits for.
    pub(crate) fn close(&self, why: Why) {
        self.why.set(Some(why));
        self.closing.notify_one();
    }

    /// Notes that the socket takes no more.
    pub(crate) fn filled(&self) {
        self.full_since_ms.set(Some(monotonic_ns() / 1_000_000));
    }

    /// Notes that the socket takes more.
    pub(crate) fn drained(&self) {
        self.full_since_ms.set(None);
    }

    /// Since when the socket takes no more, in monotonic milliseconds; `None`: it does.
    pub(crate) fn full_since_ms(&self) -> Option<u64> {
        self.full_since_ms.get()
    }

    /// Why the connection is closed, or is to be; `None`: it is not.
    pub(crate) fn why_closed(&self) -> Option<Why> {
        self.why.get()
    }

    /// Ends when the connection is to be closed; says why.
    pub(crate) async fn is_to_close(&self) -> Why {
        loop {
            self.closing.notified().await;
            if let Some(why) = self.why.get() {
                return why;
            }
        }
    }

    /// The socket was read empty: only a new event says that there is more. Once the peer has
    /// ended, the socket stays readable, since no second event reports that.
    pub(crate) fn emptied(&self) {
        self.readable.set(self.ended.get());
    }

    /// Whether there may be something to read.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable.get()
    }

    /// Whether the peer has sent its last.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Waits until there may be something to read. One future at a time may wait.
    pub(crate) async fn readable(&self) {
        poll_fn(|context| {
            if self.readable.get() {
                return Poll::Ready(());
            }
            let mut waker = self.waker.borrow_mut();
            match &mut *waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await;
        turns::take().await;
    }
}
