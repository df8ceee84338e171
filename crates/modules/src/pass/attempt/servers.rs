//! The next server of a request: at once, after a wait in the group's queue, or as a retry within
//! the group's budget.

use std::sync::Arc;
use std::time::Duration;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::Verdict;
use turnpike_lane::log::Level;
use turnpike_upstream::{Connection, Picked, Unqueued};

use super::Attempt;
use crate::pass::head::Progress;
use crate::pass::server::Stop;
use crate::pass::try_notes::end_try;

/// How often a waiting request looks for a server, in milliseconds. The end of another request
/// wakes it; a server that recovers, or that a command adds, does not.
const LOOK_MS: u64 = 1000;

impl Attempt {
    /// The next server, if one can be asked now.
    pub(super) fn next_server(&mut self, exchange: &mut Exchange) -> Option<Picked> {
        let now_ms = exchange.lane.clock.now_ms();
        exchange.upstream.clear_answer();
        self.sent = false;
        self.progress = Progress::of(&*self.passing.origin, &mut exchange.rooms);
        self.head_deadline_ms = 0;
        let picked = self.tries.next(now_ms).ok()?;
        let name = Arc::clone(picked.peer().shared_name());
        let after_redirect = std::mem::take(&mut self.after_redirect);
        exchange.account.asks(Arc::clone(&name));
        exchange.upstream.begin_try(name, now_ms, after_redirect);
        self.name_target(exchange, &picked);
        exchange.debug(format_args!("asking an upstream server"));
        Some(picked)
    }

    /// The next server; the verdict where there is none.
    pub(super) fn pick(&mut self, exchange: &mut Exchange) -> Result<Picked, Verdict> {
        let picked = self.next_server(exchange);
        picked.ok_or_else(|| self.no_live(exchange, Unqueued::NoQueue))
    }

    /// Whether the request may wait for a server.
    pub(super) fn may_queue(&self) -> bool {
        self.tries.group().settings().queue.is_some()
    }

    /// The first server that has room, when it is this request's turn; the verdict if none has in
    /// time.
    pub(super) async fn queued(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
    ) -> Result<Picked, Verdict> {
        let timeout_ms = match self.tries.enter_queue() {
            Ok(timeout_ms) => timeout_ms,
            Err(reason) => return Err(self.no_live(exchange, reason)),
        };
        exchange.account.set_action(Action::QueuedForUpstream);
        let since_ms = exchange.lane.clock.now_ms();
        loop {
            let picked = self.next_server(exchange);
            let waited_ms = exchange.lane.clock.now_ms().saturating_sub(since_ms);
            let left_ms = timeout_ms.saturating_sub(waited_ms);
            let ended = match picked {
                Some(picked) => Ok(picked),
                None if left_ms == 0 => Err(self.no_live(exchange, Unqueued::NoQueue)),
                None => {
                    self.look_again(exchange, client, left_ms.min(LOOK_MS))
                        .await?;
                    continue;
                }
            };
            if let Some(one) = exchange.upstream.last_try() {
                one.queue_ms = Some(waited_ms);
            }
            return ended;
        }
    }

    /// Waits until a server may have room, at most for this time; the verdict if the client leaves.
    async fn look_again(
        &self,
        exchange: &mut Exchange,
        client: Client<'_>,
        most_ms: u64,
    ) -> Result<(), Verdict> {
        let woken = tokio::time::timeout(Duration::from_millis(most_ms), self.tries.woken());
        tokio::select! {
            biased;
            _ = woken => return Ok(()),
            () = self.client_gone(client) => {}
        }
        exchange.log(
            Level::Info,
            format_args!("client closed connection before an upstream server had room"),
        );
        exchange.client_closed_request();
        Err(Verdict::Close)
    }

    /// Whether the group's budget allows another try. What it forbids is logged.
    pub(super) fn may_retry(&self, exchange: &Exchange) -> bool {
        let is_allowed = self.tries.may_retry(exchange.lane.clock.now_ms());
        self.log_refusal(exchange, is_allowed)
    }

    /// The same, and the budget is charged.
    fn spend_retry(&self, exchange: &Exchange) -> bool {
        let is_allowed = self.tries.spend_retry(exchange.lane.clock.now_ms());
        self.log_refusal(exchange, is_allowed)
    }

    fn log_refusal(&self, exchange: &Exchange, is_allowed: bool) -> bool {
        if !is_allowed {
            let name = self.tries.group().name();
            exchange.log(
                Level::Warn,
                format_args!("retry budget of upstream \"{name}\" is used up"),
            );
        }
        is_allowed
    }

    /// What comes after a try without a response: another server, or the end.
    pub(super) fn stopped(
        &mut self,
        exchange: &mut Exchange,
        connection: Option<Box<Connection>>,
        picked: Picked,
        stop: Stop,
    ) -> Result<Picked, Verdict> {
        let failure = match stop {
            Stop::Verdict(verdict) => {
                end_try(
                    &mut exchange.upstream,
                    &exchange.lane,
                    connection.as_deref(),
                );
                return Err(verdict);
            }
            Stop::Failed(failure) => failure,
        };
        let is_retry = self.failed(exchange, connection, picked, failure);
        let may_go_on = self.may_go_on(exchange, failure);
        if !may_go_on || (is_retry && !self.spend_retry(exchange)) {
            return Err(self.give_up(exchange, failure));
        }
        self.pick(exchange)
    }
}
