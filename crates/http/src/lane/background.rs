//! Work of a lane that no connection of HTTP/1 drives: requests that no client waits for, and
//! answers on streams of connections that clients share among requests. It waits here until the
//! lane's event loop takes it up.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;

use tokio::sync::Notify;

/// A piece of such work.
type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks until the lane takes them up.
pub(crate) struct Background {
    requests: RefCell<Vec<Task>>,
    streams: RefCell<Vec<Task>>,
    /// Requests without a client that wait or run.
    under_way: Cell<usize>,
    wake: Rc<Notify>,
}

impl Background {
    /// No tasks. `wake` wakes the lane while it waits for driven connections.
    pub(super) fn new(wake: Rc<Notify>) -> Self {
        Self {
            requests: RefCell::default(),
            streams: RefCell::default(),
            under_way: Cell::new(0),
            wake,
        }
    }

    /// Adds a request that no client waits for.
    pub(super) fn add_request(&self, task: Task) {
        self.under_way.set(self.under_way.get() + 1);
        self.requests.borrow_mut().push(task);
        self.wake.notify_one();
    }

    /// Adds the answer to a request of a stream.
    pub(super) fn add_stream(&self, answer: Task) {
        self.streams.borrow_mut().push(answer);
        self.wake.notify_one();
    }

    /// Takes the requests that wait.
    pub(crate) fn take_requests(&self) -> Vec<Task> {
        self.requests.take()
    }

    /// Takes the answers of streams that wait.
    pub(crate) fn take_streams(&self) -> Vec<Task> {
        self.streams.take()
    }

    /// Requests that have ended since the last call are under way no more.
    pub(crate) fn requests_ended(&self, count: usize) {
        self.under_way.set(self.under_way.get() - count);
    }

    /// How many requests without a client wait or run.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.get()
    }

    /// Wakes the lane while it waits for driven connections.
    pub(crate) fn wake(&self) -> &Rc<Notify> {
        &self.wake
    }
}
