//! The rest of an exchange that has to wait, as a future of its own.
//!
//! ```text
//!  Waiting ──verdict──► Sending ──► discard the body ──► handed back (kept alive)
//!                          │                     └─────► linger, close
//! ```

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket_option;

use super::splicing::{self, Moved};
use super::transfer::{self, Sent, Transfer};
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
use crate::pieces;
use crate::response::Body;
use crate::running::is_listed;
use crate::settings::LingeringClose;

/// Bytes that one driven connection may send before the others have their turn. Large enough that
/// sendfile's cost is the copying, small enough that a slice takes well under a millisecond.
pub(in crate::connection) const SLICE_BYTES: u64 = 512 * 1024;

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
                let sent = send_answer(exchange, peer, transfer).await;
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

/// Sends the whole answer, or says why it cannot.
async fn send_answer(
    exchange: &mut Exchange,
    peer: &Peer,
    transfer: Transfer,
) -> Result<(), CloseReason> {
    exchange.account.set_action(Action::Sending);
    let sent = send_all(exchange, peer, transfer).await;
    if let Err(Cut::Client(error)) = &sent {
        failed(exchange, peer, error);
    }
    exchange.account.set_completed(sent.is_ok());
    sent.map_err(|cut| match cut {
        Cut::Client(error) => CloseReason::of(&error),
        Cut::Body => CloseReason::CutShort,
    })
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

async fn linger(exchange: &mut Exchange, peer: &Peer) {
    let settings = &exchange.plan.location(exchange.walk.location()).settings;
    let wanted = match settings.lingering_close {
        LingeringClose::Off => false,
        LingeringClose::Always => true,
        LingeringClose::On => {
            !exchange.body.is_finished()
                || peer.has_unread()
                // The end of the handshake is still to come.
                || peer.transport().is_handshaking()
        }
    };
    if wanted {
        exchange.account.set_action(Action::ClosingLingering);
        peer.linger(settings.lingering_time_ms, settings.lingering_timeout_ms)
            .await;
    }
}

/// Why a response was not sent whole.
pub(in crate::connection) enum Cut {
    /// The client's connection failed.
    Client(io::Error),
    /// The body could not be had, which was logged.
    Body,
}

/// Waits for the first piece of a body whose head is held back for it.
async fn collect_first_piece(
    exchange: &mut Exchange,
    peer: &Peer,
    transfer: &mut Transfer,
) -> Result<(), Cut> {
    while transfer.is_postponed(exchange) {
        match pieces::next(exchange, Client::Http1(peer)).await {
            Some(more) => transfer.first_piece_ready(exchange, more.map_err(|_| Cut::Body)?),
            None => transfer.ended = true,
        }
    }
    Ok(())
}

/// Gets the next piece of the body, or has all that is left moved inside the kernel.
async fn next_piece(
    exchange: &mut Exchange,
    peer: &Peer,
    transfer: &mut Transfer,
    is_limited: bool,
    timeout_ms: u64,
) -> Result<(), Cut> {
    let is_raw = !is_limited && !transfer.is_chunked();
    if is_raw && splicing::pass_on(exchange, peer, timeout_ms).await? == Moved::All {
        transfer.ended = true;
        return Ok(());
    }
    match pieces::next(exchange, Client::Http1(peer)).await {
        Some(more) => transfer.piece_ready(exchange, more.map_err(|_| Cut::Body)?),
        None => transfer.ended = true,
    }
    Ok(())
}

/// Sends the whole response, as fast as its rate limit allows.
async fn send_all(exchange: &mut Exchange, peer: &Peer, mut transfer: Transfer) -> Result<(), Cut> {
    let plan = exchange.plan.clone();
    let timeout_ms = plan
        .location(exchange.walk.location())
        .settings
        .send_timeout_ms;
    let rate = exchange.rate_limit();
    let started_ms = exchange.lane.clock.now_ms();
    let mut is_first = exchange.requester.requests() == 1;
    collect_first_piece(exchange, peer, &mut transfer).await?;
    loop {
        let budget = match &rate {
            None => SLICE_BYTES,
            Some(rate) => {
                let elapsed_ms = exchange.lane.clock.now_ms().saturating_sub(started_ms);
                match rate
                    .allowed(elapsed_ms)
                    .saturating_sub(exchange.account.sent_bytes())
                {
                    0 => {
                        let pause_ms = rate.pause_ms(exchange.account.sent_bytes(), elapsed_ms);
                        let pause = Duration::from_millis(pause_ms);
                        tokio::select! {
                            biased;
                            () = tokio::time::sleep(pause) => {}
                            () = peer.gone() => {
                                let error = io::ErrorKind::ConnectionReset;
                                return Err(Cut::Client(error.into()));
                            }
                            () = pieces::read_ahead(exchange, Client::Http1(peer)) => {}
                        }
                        continue;
                    }
                    allowed => allowed.min(SLICE_BYTES),
                }
            }
        };
        let sent = match transfer.send(exchange, peer.transport(), budget) {
            Ok(Sent::Blocked) => {
                peer.is_full();
                let waited = tokio::select! {
                    biased;
                    waited = peer.writable(timeout_ms) => waited,
                    () = pieces::read_ahead(exchange, Client::Http1(peer)) => Ok(()),
                };
                waited.map_err(Cut::Client)?;
                continue;
            }
            sent => sent.map_err(Cut::Client)?,
        };
        if std::mem::take(&mut is_first) {
            let took_ns =
                monotonic_ns().saturating_sub(exchange.requester.connection().accepted_ns);
            exchange.lane.counters.first_byte.record(took_ns);
        }
        match sent {
            Sent::All => return Ok(()),
            Sent::Slice | Sent::Blocked => tokio::task::yield_now().await,
            Sent::WantsFile => transfer.read_file(exchange).await.map_err(Cut::Client)?,
            Sent::WantsPiece => {
                let is_limited = rate.is_some();
                next_piece(exchange, peer, &mut transfer, is_limited, timeout_ms).await?;
            }
        }
    }
}

/// Says why a response was cut short, and resets the connection where it is asked for.
fn failed(exchange: &Exchange, peer: &Peer, error: &io::Error) {
    if error.kind() == io::ErrorKind::TimedOut {
        exchange.log_client_timeout();
        if exchange.location().settings.reset_timedout_connection {
            let _ = socket_option::set_reset_on_close(peer.transport().as_fd());
        }
        return;
    }
    transfer::log_send_error(exchange, error);
}
