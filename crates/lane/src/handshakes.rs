//! How many TLS handshakes a lane goes on with in one turn, whatever protocol they are for.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// Handshakes that a lane goes on with in one turn: with RSA keys of 2048 bits they take some 5 ms
/// together. The others wait for the next turn, so that a storm of new connections does not starve
/// open ones.
const PER_TURN_MAX: usize = 8;

/// The handshakes of a lane.
pub struct Handshakes {
    /// How many this turn went on with.
    count: Cell<usize>,
    /// Notified when a turn begins.
    next_turn: Notify,
    /// Wakes the lane.
    wake: Rc<Notify>,
}

impl Handshakes {
    /// None yet. `wake` wakes the lane where it waits for events.
    pub fn new(wake: Rc<Notify>) -> Self {
        Self {
            count: Cell::new(0),
            next_turn: Notify::new(),
            wake,
        }
    }

    /// Whether this turn has gone on with as many as it may.
    pub fn are_spent(&self) -> bool {
        self.count.get() >= PER_TURN_MAX
    }

    /// Counts one that this turn goes on with.
    pub fn count(&self) {
        self.count.set(self.count.get() + 1);
    }

    /// Waits until a turn may go on with one more, and counts it.
    pub async fn admitted(&self) {
        while self.are_spent() {
            self.wake.notify_one();
            self.next_turn.notified().await;
        }
        self.count();
    }

    /// The turn has ended.
    pub fn turn_ended(&self) {
        // Nobody waits unless this turn was spent: who began to wait in an earlier one was notified
        // at its end. A notification takes three locked instructions, whether anybody waits or not.
        if self.count.replace(0) >= PER_TURN_MAX {
            self.next_turn.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    //! The connections that have to wait.

    use std::future::Future;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use tokio::sync::Notify;

    use super::{Handshakes, PER_TURN_MAX};

    #[test]
    fn one_more_than_a_turn_may_go_on_with_waits_for_the_next() {
        let handshakes = Handshakes::new(Rc::new(Notify::new()));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..PER_TURN_MAX {
            assert!(!handshakes.are_spent());
            assert!(pin!(handshakes.admitted()).poll(&mut context).is_ready());
        }
        let mut late = pin!(handshakes.admitted());
        assert_eq!(late.as_mut().poll(&mut context), Poll::Pending);
        handshakes.turn_ended();
        assert_eq!(late.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
