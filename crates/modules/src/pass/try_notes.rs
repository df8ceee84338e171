//! What is noted of a try, for `$upstream_*` variables and the log: when it was connected, why it
//! was not, and what went over its connection.

use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::lane::LaneShared;
use turnpike_http::phase::Verdict;
use turnpike_http::upstream::Upstream;
use turnpike_lane::log::Level;
use turnpike_upstream::{ConnectError, Connection};

use super::conditions::Failure;
use super::server::Stop;

/// What the log says where the client did not wait.
pub(crate) const CLIENT_GONE: &str = "epoll_wait() reported that client prematurely closed \
                                      connection, so upstream connection is closed too";

/// Notes when the connection was there.
pub(crate) fn connected(upstream: &mut Upstream, lane: &LaneShared) {
    let now_ms = lane.clock.now_ms();
    if let Some(one) = upstream.last_try() {
        one.connect_ms = Some(now_ms.saturating_sub(one.started_ms));
    }
}

/// What a failure to connect means.
pub(crate) fn not_connected(exchange: &Exchange, error: &ConnectError) -> Stop {
    let connecting = matches!(
        error,
        ConnectError::Socket(_)
            | ConnectError::Bind(_)
            | ConnectError::Connect(_)
            | ConnectError::TimedOut
    );
    if !connecting {
        exchange.account.set_action(Action::HandshakingUpstream);
    }
    if error.is_timeout() {
        return Stop::Failed(Failure::Timeout);
    }
    exchange.log(Level::Error, format_args!("{error}"));
    Stop::Failed(Failure::Error)
}

/// Says that the client did not wait.
pub(crate) fn client_went_away(exchange: &mut Exchange) -> Stop {
    exchange.log(Level::Info, format_args!("{CLIENT_GONE}"));
    exchange.client_closed_request();
    Stop::Verdict(Verdict::Close)
}

/// Writes down how long a try took and what went over its connection.
pub(crate) fn end_try(upstream: &mut Upstream, lane: &LaneShared, connection: Option<&Connection>) {
    let now_ms = lane.clock.now_ms();
    let Some(one) = upstream.last_try() else {
        return;
    };
    if one.response_ms.is_none() {
        one.response_ms = Some(now_ms.saturating_sub(one.started_ms));
    }
    if let Some(connection) = connection {
        one.bytes_sent = connection.bytes_sent();
        one.bytes_received = connection.bytes_received();
    }
}
