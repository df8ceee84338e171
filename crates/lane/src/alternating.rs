//! Two futures at once, neither of which can hold the other up.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Runs two futures until one of them ends. In every turn the other one comes first: tokio gives a
/// turn a budget of reads and writes, and one that never has to wait uses all of it.
///
/// A random order, as tokio's `select!` has it, does the same, but a simulated lane could not be
/// run again.
pub async fn first_of<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let mut is_other_first = false;
    poll_fn(|context| {
        is_other_first = !is_other_first;
        if is_other_first && let Poll::Ready(ended) = other.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        if let Poll::Ready(ended) = one.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        if is_other_first {
            return Poll::Pending;
        }
        other.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_first_one_alternates() {
        let polled = RefCell::new(String::new());
        let note = |name| {
            let polled = &polled;
            poll_fn(move |_| {
                polled.borrow_mut().push(name);
                Poll::<()>::Pending
            })
        };
        let mut both = pin!(first_of(note('a'), note('b')));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(both.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(*polled.borrow(), "baabba");
    }

    #[test]
    fn the_one_that_ends_is_the_result() {
        for (one, other, wanted) in [
            (Some(1), None, 1),
            (None, Some(2), 2),
            (Some(1), Some(2), 2),
        ] {
            let ready =
                |value: Option<u8>| poll_fn(move |_| value.map_or(Poll::Pending, Poll::Ready));
            let mut both = pin!(first_of(ready(one), ready(other)));
            let polled = both.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(polled, Poll::Ready(wanted), "{one:?} {other:?}");
        }
    }
}
