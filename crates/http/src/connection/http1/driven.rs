//! The rest of an exchange that has to wait, as a future of its own.
//!
//! ```text
//!  Waiting ──verdict──► Sending ──► discard the body ──► handed back (kept alive)
//!                          │                     └─────► linger, close
//! ```

use std::rc::Rc;

use turnpike_lane::transport::Transport;

use super::answer;
use super::transfer::Transfer;
use crate::body::Progress;
use crate::client::Client;
use crate::connection::open::Connection;
use crate::connection::return_queue::{DrivenSlot, HandBackOnDrop, Left, ReturnQueue};
use crate::counters::CloseReason;
use crate::engine::{Answer, Outcome};
use crate::exchange::{Action, Exchange};
use crate::h1::peer::Peer;
use crate::h1::watch::Why;
use crate::log::DrivenExchange;
use crate::phase::Waiting;
use crate::response::Body;
use crate::running::is_listed;
use crate::settings::LingeringClose;

/// Where a driven exchange goes on.
pub(in crate::connection) enum Stage {
    /// A handler waits.
    Waiting(Box<dyn Waiting>),
    /// A response is to be sent from its beginning.
    Answer,
    /// A response is partly sent.
    Sending(Transfer),
    /// The response is sent; the connection goes on as another protocol's.
    Tunnel,
    /// The response is sent; the rest of the request body is not read yet.
    Discard,
    /// All is said; what the client still sends is read for a while.
    Linger,
}

/// Drives an exchange to its end and hands the connection back.
pub(in crate::connection) async fn drive(
    connection: Connection,
    exchange: Box<Exchange>,
    stage: Stage,
    slot: DrivenSlot,
    return_queue: Rc<ReturnQueue>,
) {
    let (transport, input, detached) = connection.detach();
    let handed_back = HandBackOnDrop::new(&return_queue, &slot);
    let peer = Peer::new(transport, input, Rc::clone(&slot.watch));
    let mut driven = DrivenExchange::new(exchange);
    let Some(exchange) = driven.exchange() else {
        return;
    };
    let ended = tokio::select! {
        biased;
        why = slot.watch.is_to_close() => Err(why),
        ended = to_the_end(exchange, &peer, stage) => Ok(ended),
    };
    let ended = ended.unwrap_or_else(|why| Err(close(exchange, why)));
    let (transport, input) = peer.into_parts();
    let transport = ended.and_then(|()| transport.ok_or(CloseReason::Failed));
    let connection = transport.map(|transport| detached.attach(transport, input));
    handed_back.disarm();
    let left = match (connection, driven.into_exchange()) {
        (Ok(connection), Some(exchange)) => Left::Connection(connection, exchange),
        (Err(reason), Some(exchange)) => {
            let lane = Rc::clone(&exchange.lane);
            lane.recycle(exchange);
            Left::Ended(reason)
        }
        (_, None) => Left::Dropped,
    };
    return_queue.give_back(slot, left);
}

/// The request was closed, whatever it was at.
fn close(exchange: &mut Exchange, why: Why) -> CloseReason {
    if is_listed(exchange.account.action()) {
        exchange.end_body();
        match why {
            Why::Commanded => exchange.closed_by_command(),
            Why::Cut => exchange.closed_by_shutdown(),
            Why::MakesRoom => exchange.gave_way(),
        }
        exchange.log_access();
    }
    why.reason()
}

/// `Ok`: the connection may be used again.
async fn to_the_end(
    exchange: &mut Exchange,
    peer: &Peer,
    mut stage: Stage,
) -> Result<(), CloseReason> {
    loop {
        stage = match stage {
            Stage::Waiting(waiting) => {
                let outcome = Outcome::Wait(waiting);
                match exchange.drive(Client::Http1(peer), outcome).await {
                    Answer::Response => Stage::Answer,
                    Answer::Nothing => {
                        let reason = exchange.reason_without_answer();
                        exchange.log_access();
                        return Err(reason);
                    }
                }
            }
            Stage::Answer => match Transfer::begin(exchange) {
                Some(transfer) => Stage::Sending(transfer),
                None => {
                    exchange.end_body();
                    exchange.log_access();
                    return Err(CloseReason::CutShort);
                }
            },
            Stage::Sending(transfer) => {
                let sent = answer::send(exchange, peer, transfer).await;
                if sent.is_ok() && matches!(exchange.response.body(), Body::Tunnel(_)) {
                    stage = Stage::Tunnel;
                    continue;
                }
                exchange.end_body();
                exchange.log_access();
                match (sent, exchange.sending.keeps_connection()) {
                    (Err(reason), _) => return Err(reason),
                    (Ok(()), true) if exchange.body.is_finished() => return Ok(()),
                    (Ok(()), true) => Stage::Discard,
                    (Ok(()), false) => Stage::Linger,
                }
            }
            Stage::Tunnel => {
                if let Body::Tunnel(tunnel) = exchange.response.take_body() {
                    tunnel.run(exchange, Client::Http1(peer)).await;
                }
                exchange.log_access();
                return Err(CloseReason::TunnelEnded);
            }
            Stage::Discard => {
                if discard_body(exchange, peer).await {
                    return Ok(());
                } else {
                    return Err(CloseReason::ClientAborted);
                }
            }
            Stage::Linger => {
                let settings = &exchange.location().settings;
                peer.end_session(settings.send_timeout_ms).await;
                linger(exchange, peer).await;
                return Err(CloseReason::Answered);
            }
        }
    }
}

/// Reads what is left of the body and throws it away, so that the next request can be read.
/// `false`: that cannot be, and the connection must be closed.
async fn discard_body(exchange: &mut Exchange, peer: &Peer) -> bool {
    let settings = &exchange.plan.location(exchange.walk.location()).settings;
    let (whole_ms, pause_ms) = (settings.lingering_time_ms, settings.lingering_timeout_ms);
    let until_ms = exchange.lane.clock.now_ms() + whole_ms;
    loop {
        match exchange.drop_buffered_body() {
            Ok(Progress::Complete) => return true,
            Ok(Progress::Incomplete) => {}
            Err(_) => return false,
        }
        let now_ms = exchange.lane.clock.now_ms();
        if now_ms >= until_ms {
            return false;
        }
        // Not 0, which would wait for ever.
        let timeout_ms = pause_ms.clamp(1, until_ms - now_ms);
        let form = (exchange.body_length(), exchange.strictness());
        let arrived = exchange.body.arrived();
        match peer.read_body(form, arrived, timeout_ms).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

async fn linger(exchange: &Exchange, peer: &Peer) {
    let settings = &exchange.plan.location(exchange.walk.location()).settings;
    if lingers(exchange, peer.transport(), peer.has_unread()) {
        exchange.account.set_action(Action::ClosingLingering);
        peer.linger(settings.lingering_time_ms, settings.lingering_timeout_ms)
            .await;
    }
}

/// Whether what the client still sends is read before its connection is closed. `has_unread`: some
/// of it has come.
pub(super) fn lingers(exchange: &Exchange, transport: &Transport, has_unread: bool) -> bool {
    match exchange.location().settings.lingering_close {
        LingeringClose::Off => false,
        // While a handshake goes on, its end is still to come.
        LingeringClose::On => {
            !exchange.body.is_finished() || has_unread || transport.is_handshaking()
        }
        LingeringClose::Always => true,
    }
}
