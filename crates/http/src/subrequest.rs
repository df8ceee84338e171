//! Requests that another request makes: its content once more in the background, or a path of its
//! own whose answer the request looks at, or nobody.
//!
//! A subrequest shares the head, the server and the values of variables with its request. It walks
//! the phases as after an internal redirect, but for access control, which has its request let
//! through already; filters do not see its answer. Its client is [`Client::Nobody`].

use std::any::Any;
use std::rc::Rc;

use turnpike_wire::message::Method;

use crate::body::RequestBody;
use crate::client::Client;
use crate::engine::{Answer, Purpose};
use crate::exchange::Exchange;
use crate::regex::Settled;
use crate::response::{Body, BodyStream};
use crate::variables::{Template, VariableId};

/// Requests that may wait for their turn or run in the background of one lane. More renewals at
/// once would not make anything fresher; more copies of requests would be a second load of that
/// size.
const BACKGROUND_REQUESTS_MAX: usize = 1024;

/// What a subrequest has of its request beside its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing: the method is GET, and there is no body.
    None,
    /// The method, and no body.
    Method,
    /// The method, and the body, which has been read.
    Body,
}

impl Exchange {
    /// A subrequest of this request, at the beginning of its walk.
    pub fn subrequest(&self, path: &[u8], query: &[u8], content: Content) -> Box<Exchange> {
        let mut child = self.copy();
        child
            .walk
            .begin_subrequest(Purpose::Subrequest, path, query);
        child.walk.set_location(self.server().root);
        child.rooms.begin_subrequest_of(&self.rooms);
        match content {
            Content::None => child.walk.ask_with(Method::Get),
            Content::Method => child.walk.ask_with(self.method()),
            Content::Body => {
                child.walk.ask_with(self.method());
                child.body = RequestBody::of_subrequest(&self.body);
            }
        }
        child.body.expect_answered();
        child
    }

    /// A subrequest whose answer only decides about this request: its content is sent to no client.
    /// The method is GET, and there is no body.
    pub fn subrequest_to_decide(&self, path: &[u8]) -> Box<Exchange> {
        let mut child = self.subrequest(path, b"", Content::None);
        child.walk.decide_only();
        child
    }

    /// A subrequest whose answer becomes a part of this request's response: filters that change
    /// texts see it. The method is GET; the body is that of this request, where it was read.
    pub fn subrequest_part(&self, path: &[u8], query: &[u8]) -> Box<Exchange> {
        let content = if self.body.is_finished() {
            Content::Body
        } else {
            Content::None
        };
        let mut child = self.subrequest(path, query, content);
        child.walk.begin_subrequest(Purpose::Part, path, query);
        child.walk.ask_with(Method::Get);
        child
    }

    /// A subrequest of this request, which has ended: its variables say what the request has cost.
    /// The target is a path, or the name of a named location, which gets the request's own path.
    /// `None`: there is no such location.
    pub fn subrequest_afterwards(&self, target: &[u8]) -> Option<Box<Exchange>> {
        let content = if self.body.is_finished() {
            Content::Body
        } else {
            Content::Method
        };
        let mut child = match target.first() {
            Some(b'@') => {
                let name = std::str::from_utf8(target).ok()?;
                let location = *self.server().named.get(name)?;
                let mut child = self.subrequest(self.walk.path(), self.walk.query(), content);
                child.begin_in(location);
                child
            }
            _ => self.subrequest(target, b"", content),
        };
        child.account.begin_subrequest_of_ended(&self.account);
        Some(child)
    }

    /// A subrequest that has the content of this request's own location made once more, for
    /// another part of the whole, say. The method is the request's; there is no body.
    pub fn subrequest_in_place(&self) -> Box<Exchange> {
        let mut child = self.copy_in_place(Purpose::Subrequest);
        child.body.expect_answered();
        child
    }

    /// Runs a subrequest to its answer, whose body is not read.
    pub async fn answer_subrequest(&mut self) -> Answer {
        let outcome = self.run_subrequest();
        self.drive(Client::Nobody, outcome).await
    }

    /// The value of a template, for those who may wait for the matches in it. `None`: one of them
    /// came to no verdict.
    pub async fn evaluate_waiting(&mut self, template: &Template) -> Option<Vec<u8>> {
        loop {
            self.begin_matching();
            let value = template.value(self);
            match self.settle_matching() {
                Settled::Decided => return Some(value),
                Settled::Failed => return None,
                // Nobody can go away meanwhile.
                Settled::Wait(waiting) => drop(waiting.run(self, Client::Nobody).await),
            }
        }
    }

    /// Stores a value with the request that made this subrequest. The values are those of both, so
    /// that what is evaluated next finds this one.
    pub fn set_variable_of(&self, request: &mut Exchange, id: VariableId, value: &[u8]) {
        self.share_values(request);
        request.set_variable(id, value);
        self.share_values(request);
    }

    /// Gives the request that made this subrequest the values as they are now, in exchange for
    /// those that it has.
    pub fn share_values(&self, request: &Exchange) {
        std::mem::swap(
            &mut *self.evaluation.values().borrow_mut(),
            &mut *request.evaluation.values().borrow_mut(),
        );
    }

    /// Ends a subrequest: what is left of its body is let go, and the log is written where
    /// `log_subrequest` asks for it.
    pub fn end_subrequest(mut self: Box<Self>) {
        self.end_body();
        if self.location().settings.log_subrequest {
            self.write_access_log();
        }
        self.rooms.release();
        let lane = Rc::clone(&self.lane);
        lane.recycle(self);
    }

    /// Runs a subrequest whose answer nobody looks at. `false`: there is too much in the
    /// background already.
    pub fn start_in_background(mut self: Box<Self>) -> bool {
        if self.lane.background.under_way() >= BACKGROUND_REQUESTS_MAX {
            return false;
        }
        let lane = Rc::clone(&self.lane);
        lane.run_in_background(Box::pin(async move {
            self.answer_subrequest().await;
            self.end_subrequest();
        }));
        true
    }

    /// Answers a copy of this request once more, by the location's content handler, and throws the
    /// answer away; filters and logs do not see it. `false`: there is too much in the background
    /// already.
    ///
    /// The copy holds `guard`, as [`Rooms::hold`](crate::rooms::Rooms::hold) says.
    pub fn renew_in_background(&self, guard: impl Any) -> bool {
        if self.lane.background.under_way() >= BACKGROUND_REQUESTS_MAX {
            return false;
        }
        let mut copy = self.copy_in_place(Purpose::Renewal);
        copy.rooms.hold(guard);
        self.lane.run_in_background(Box::pin(async move {
            let outcome = copy.run_content();
            if copy.drive(Client::Nobody, outcome).await == Answer::Response
                && let Body::Stream(body) = copy.response.take_body()
            {
                read_out(copy, body).await;
            }
        }));
        true
    }

    /// Ends the body, of which no more is wanted. A body that others wait for is read to its end.
    pub(crate) fn end_body(&mut self) {
        let Body::Stream(_) = self.response.body() else {
            return;
        };
        let Body::Stream(mut body) = self.response.take_body() else {
            return;
        };
        if !body.outlives_client() {
            body.ended(self);
            body.recycle(self);
        } else if let Err(mut body) = self.read_body_in_background(body) {
            body.ended(self);
        }
    }

    /// Reads a body to its end in the background. Gives it back where there is too much of that
    /// already.
    fn read_body_in_background(
        &self,
        body: Box<dyn BodyStream>,
    ) -> Result<(), Box<dyn BodyStream>> {
        if self.lane.background.under_way() >= BACKGROUND_REQUESTS_MAX {
            return Err(body);
        }
        let mut copy = self.copy_in_place(Purpose::Renewal);
        copy.upstream.clone_from(&self.upstream);
        self.lane.run_in_background(Box::pin(read_out(copy, body)));
        Ok(())
    }

    /// A copy that stands where this request stands in its walk.
    fn copy_in_place(&self, purpose: Purpose) -> Box<Exchange> {
        let mut copy = self.copy();
        copy.walk.begin_in_place(&self.walk, purpose);
        copy.rooms.begin_subrequest_of(&self.rooms);
        copy.evaluation
            .captures()
            .borrow_mut()
            .clone_from(&self.evaluation.captures().borrow());
        copy
    }

    /// A new exchange for the same request, without its body.
    fn copy(&self) -> Box<Exchange> {
        let mut copy = self.lane.exchange(&self.plan, self.requester.connection());
        copy.begin_request();
        copy.share_request(self);
        copy.body.leave_out();
        let now_ms = self.lane.clock.now_ms();
        copy.account.begin_subrequest_of(&self.account, now_ms);
        copy.walk.set_server(self.walk.server());
        let changed = self.walk.changed_fields();
        copy.walk.changed_fields_mut().copy(changed);
        copy.evaluation
            .values()
            .borrow_mut()
            .copy(&self.evaluation.values().borrow());
        copy.requester = self.requester.of_subrequest();
        copy
    }
}

/// Reads a body to its end, and throws its pieces away.
async fn read_out(mut exchange: Box<Exchange>, mut body: Box<dyn BodyStream>) {
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
