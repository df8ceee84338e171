//! A new connection to a server without a task: the request is written while connecting is under
//! way, and the first send of it tells whether the server is connected.

use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::Verdict;
use turnpike_upstream::{ConnectError, Connection, Picked};
use turnpike_wire::message::Delivery;

use super::{Attempt, Pending, Step};
use crate::pass::awaited_head;
use crate::pass::origin::Carries;
use crate::pass::server::{Stop, UpstreamConnection};
use crate::pass::try_notes::{client_went_away, connected, not_connected};

impl Attempt {
    /// Connects to a server, and waits for that without a task where the lane's loop can.
    pub(super) fn connect_at_once(self, exchange: &mut Exchange, picked: Picked) -> Verdict {
        let passing = &self.passing;
        let is_watched = exchange.lane.watched_sockets.get().is_some();
        let has_messages = self.carries() == Carries::Messages;
        let step = if is_watched && self.begins_plainly() && has_messages {
            exchange.account.set_action(Action::ConnectingUpstream);
            let bind = passing.bind.address(exchange);
            let options = self.options(bind.as_ref(), None, &[]);
            match Connection::start(&picked, &options, exchange.lane.clock.now_ms()) {
                Ok(connection) => {
                    if !connection.is_connecting() {
                        connected(&mut exchange.upstream, &exchange.lane);
                    }
                    let server = UpstreamConnection {
                        connection,
                        picked,
                        upstream: Arc::clone(self.route.upstream(passing)),
                        delivery: Delivery::default(),
                    };
                    return awaited_head::begin(exchange, self, server);
                }
                Err(error) => Step::Stopped(None, picked, not_connected(exchange, &error)),
            }
        } else {
            Step::Connect(picked)
        };
        let attempt = self;
        Verdict::Wait(Box::new(Pending { attempt, step }))
    }

    /// When connecting must have ended, in the lane's monotonic milliseconds; 0: never.
    pub(crate) fn connect_deadline_ms(&self, connection: &Connection) -> u64 {
        match self.passing.timeouts.connect_ms {
            0 => 0,
            connect_ms => connection.opened_ms() + connect_ms,
        }
    }

    /// Waits until a connection is established that is on its way.
    pub(super) async fn connecting(
        &self,
        exchange: &mut Exchange,
        client: Client<'_>,
        connection: &Connection,
    ) -> Result<(), Stop> {
        exchange.account.set_action(Action::ConnectingUpstream);
        let left_ms = match self.connect_deadline_ms(connection) {
            0 => 0,
            // Not 0, which would wait for ever.
            deadline_ms => deadline_ms
                .saturating_sub(exchange.lane.clock.now_ms())
                .max(1),
        };
        let established: Option<Result<(), ConnectError>> = tokio::select! {
            biased;
            established = connection.established(left_ms) => Some(established),
            () = self.client_gone(client) => None,
        };
        match established {
            Some(Ok(())) => {
                connected(&mut exchange.upstream, &exchange.lane);
                Ok(())
            }
            Some(Err(error)) => Err(not_connected(exchange, &error)),
            None => Err(client_went_away(exchange)),
        }
    }
}
