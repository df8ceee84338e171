//! What seldom happens to a request: it is not passed on at all, or once more from the beginning.

use std::sync::Arc;

use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::Verdict;
use turnpike_lane::log::Level;
use turnpike_upstream::Unqueued;

use super::{Attempt, Pending, Step, begin_tries};
use crate::pass::conditions::Failure;
use crate::pass::relay;
use crate::pass::server::UpstreamConnection;
use crate::pass::try_notes::end_try;
use crate::pass::upload::Upload;

impl Attempt {
    /// Gives up before any server is asked, since connections run out.
    pub(crate) fn no_connection(mut self, exchange: &mut Exchange) -> Verdict {
        exchange.account.set_action(Action::ConnectingUpstream);
        let most = exchange.plan.events.connections_max;
        exchange.log(
            Level::Alert,
            format_args!(
                "{most} worker_connections are not enough for another request to an upstream \
                 server (raise worker_connections, or check whether requests are passed back to \
                 this server)"
            ),
        );
        self.give_up(exchange, Failure::NoConnection)
    }

    /// Gives up since no server can be asked, and the request may not wait for one.
    pub(super) fn no_live(&mut self, exchange: &mut Exchange, reason: Unqueued) -> Verdict {
        let after_redirect = std::mem::take(&mut self.after_redirect);
        let group = Arc::clone(self.tries.group());
        let name = group.name();
        let now_ms = exchange.lane.clock.now_ms();
        exchange
            .upstream
            .begin_try(Arc::from(name), now_ms, after_redirect);
        let target = exchange.upstream.target_mut();
        target.clear();
        target.extend_from_slice(self.route.scheme(&self.passing));
        target.extend_from_slice(name.as_bytes());
        self.push_path(exchange);
        exchange.account.set_action(Action::ConnectingUpstream);
        exchange.log(Level::Error, format_args!("{reason}"));
        let failure = if group.has_no_servers() {
            Failure::NoServers
        } else {
            Failure::NoLive
        };
        if let Some(one) = exchange.upstream.last_try() {
            one.status = failure.status();
        }
        end_try(&mut exchange.upstream, &exchange.lane, None);
        self.give_up(exchange, failure)
    }

    /// Begins anew, since the answer was to another question than the one that is asked now.
    pub(crate) fn ask_again(
        mut self,
        exchange: &mut Exchange,
        server: UpstreamConnection,
        upload: &Upload,
    ) -> Verdict {
        relay::discard(exchange, server, self.progress.records.take(), upload);
        exchange.response.clear();
        if self.unbuffered {
            // The body has gone with the first question.
            return self.give_up(exchange, Failure::InvalidHeader);
        }
        self.tries = begin_tries(exchange, &self.passing, &self.route);
        match self.pick(exchange) {
            Ok(picked) => Verdict::Wait(Box::new(Pending {
                attempt: self,
                step: Step::Connect(picked),
            })),
            Err(verdict) => verdict,
        }
    }
}
