//! Work that no client waits for: it is driven like a connection, and counted like one, so that the
//! lane's runtime runs as long as it does.

use std::rc::Rc;

use turnpike_lane::turns;

use super::return_queue::ReturnQueue;
use crate::response::LocalFuture;

/// Runs a task and says when it has ended, however it ends.
pub(super) fn counted(
    task: LocalFuture<'static, ()>,
    return_queue: Rc<ReturnQueue>,
) -> LocalFuture<'static, ()> {
    struct End(Rc<ReturnQueue>);
    impl Drop for End {
        fn drop(&mut self) {
            let Self(queue) = self;
            let is_spent = usize::from(turns::is_ending());
            queue.background_ended.set(queue.background_ended.get() + 1);
            queue
                .background_spent
                .set(queue.background_spent.get() + is_spent);
            queue.notify.notify_one();
        }
    }
    Box::pin(async move {
        let _end = End(return_queue);
        task.await;
    })
}

/// Runs the answer of a stream and says when it has ended, however it ends.
pub(super) fn counted_stream(
    answer: LocalFuture<'static, ()>,
    return_queue: Rc<ReturnQueue>,
) -> LocalFuture<'static, ()> {
    struct End(Rc<ReturnQueue>);
    impl Drop for End {
        fn drop(&mut self) {
            self.0.streams_ended.set(self.0.streams_ended.get() + 1);
            self.0.notify.notify_one();
        }
    }
    Box::pin(async move {
        let _end = End(return_queue);
        answer.await;
    })
}
