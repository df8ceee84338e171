//! Work that no client waits for: a request sent to an upstream server only to renew what a cache
//! has of it.
//!
//! It is driven like a connection, and counted like one, so that the lane's runtime runs as long as
//! it does.

use std::any::Any;
use std::rc::Rc;

use turnpike_wire::h1::Framing;

use super::ReturnQueue;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::phase::Verdict;
use crate::response::{Body, BodyStream, LocalFuture};

/// Tasks that may wait for their turn or run on one lane. More than this many renewals at once
/// would not make anything fresher.
const BACKGROUND_REQUESTS_MAX: usize = 1024;

impl Exchange {
    /// Answers a copy of this request once more, by the location's content handler, and throws the
    /// answer away; filters and logs do not see it. The copy is [`Exchange::background`]. `false`:
    /// there is too much of that already.
    ///
    /// `guard` goes with the copy, among its guards.
    pub fn repeat_aside(&self, guard: Box<dyn Any>) -> bool {
        if self.lane.background.under_way.get() >= BACKGROUND_REQUESTS_MAX {
            return false;
        }
        let mut copy = self.copy();
        copy.guards.push(guard);
        self.lane.run_in_background(Box::pin(answer(copy)));
        true
    }

    /// Reads a body to its end that the client takes no more of. Gives it back where there is too
    /// much of that already.
    pub(super) fn finish_aside(
        &self,
        body: Box<dyn BodyStream>,
    ) -> Result<(), Box<dyn BodyStream>> {
        if self.lane.background.under_way.get() >= BACKGROUND_REQUESTS_MAX {
            return Err(body);
        }
        let mut copy = self.copy();
        copy.upstream.clone_from(&self.upstream);
        self.lane.run_in_background(Box::pin(drain(copy, body)));
        Ok(())
    }

    fn copy(&self) -> Box<Exchange> {
        let mut client = self.client;
        // The connection may be gone before the copy is: nothing can be asked of it.
        client.descriptor = -1;
        let mut copy = self.lane.exchange(&self.plan, &client);
        let head = self.head_bytes().get(..self.head.head_len);
        copy.input.clear();
        copy.head_start = 0;
        copy.begin_request();
        copy.input.extend_from_slice(head.unwrap_or_default());
        copy.head.clone_from(&self.head);
        copy.head.framing = Framing::None;
        copy.head_complete = true;
        copy.server = self.server;
        copy.location = self.location;
        copy.path.clone_from(&self.path);
        copy.query.clone_from(&self.query);
        copy.host.clone_from(&self.host);
        copy.phase = self.phase;
        copy.target_holds = self.target_holds;
        copy.location_holds = self.location_holds;
        copy.internal = self.internal;
        copy.captures.get_mut().clone_from(&self.captures.borrow());
        copy.values.get_mut().clone_from(&self.values.borrow());
        copy.connection_peer = self.connection_peer;
        copy.proxy_header.clone_from(&self.proxy_header);
        copy.background = true;
        copy
    }
}

/// Lets the content handler answer, and reads the answer's body to its end.
async fn answer(mut exchange: Box<Exchange>) {
    let Some(content) = exchange.location().content.clone() else {
        return;
    };
    let mut verdict = content.handle(&mut exchange);
    loop {
        let waiting = match verdict {
            Verdict::Wait(waiting) => waiting,
            Verdict::Await(awaiting) => awaiting.into_waiting(),
            _ => break,
        };
        verdict = waiting.run(&mut exchange, Client::Nobody).await;
    }
    if !matches!(verdict, Verdict::Respond) {
        return;
    }
    if let Body::Stream(body) = std::mem::take(&mut exchange.response.body) {
        drain(exchange, body).await;
    }
}

async fn drain(mut exchange: Box<Exchange>, mut body: Box<dyn BodyStream>) {
    let mut piece = Vec::new();
    loop {
        piece.clear();
        match body.next(&mut exchange, Client::Nobody, &mut piece).await {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
    }
    body.ended(&mut exchange);
}

/// Runs a task and says when it has ended, however it ends.
pub(super) fn counted(
    task: LocalFuture<'static, ()>,
    return_queue: Rc<ReturnQueue>,
) -> LocalFuture<'static, ()> {
    struct End(Rc<ReturnQueue>);
    impl Drop for End {
        fn drop(&mut self) {
            self.0
                .background_ended
                .set(self.0.background_ended.get() + 1);
            self.0.notify.notify_one();
        }
    }
    Box::pin(async move {
        let _end = End(return_queue);
        task.await;
    })
}
