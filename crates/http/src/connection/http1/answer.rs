//! A response on its way to a client that may have to be waited for: as fast as the client and the
//! rate limit allow.
//!
//! ```text
//!            ┌──────────────────────────────────────────────┐
//!  budget ─► send ─┬─ socket full ─► wait for the client ───┤
//!    │ none        ├─ piece wanted ─► make it, or splice ───┤
//!    └─► pause     ├─ file wanted ─► read it on a thread ───┘
//!                  └─ all sent
//! ```

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket_option;

use super::rate::RateLimit;
use super::splicing::{self, Moved};
use super::transfer::{self, Sent, Transfer};
use crate::client::Client;
use crate::counters::CloseReason;
use crate::exchange::{Action, Exchange};
use crate::h1::peer::Peer;
use crate::pieces;

/// Bytes that one driven connection may send before the others have their turn. Large enough that
/// sendfile's cost is the copying, small enough that a slice takes well under a millisecond.
pub(super) const SLICE_BYTES: u64 = 512 * 1024;

/// Why a response was not sent whole.
pub(super) enum Cut {
    /// The client's connection failed.
    Client(io::Error),
    /// The body could not be had, which was logged.
    Body,
}

/// Sends the whole response, or says why it cannot.
pub(super) async fn send(
    exchange: &mut Exchange,
    peer: &Peer,
    transfer: Transfer,
) -> Result<(), CloseReason> {
    exchange.account.set_action(Action::Sending);
    let mut answer = DrivenAnswer::new(exchange, peer, transfer);
    let sent = answer.send().await;
    if let Err(Cut::Client(error)) = &sent {
        failed(exchange, peer, error);
    }
    exchange.account.set_completed(sent.is_ok());
    sent.map_err(|cut| match cut {
        Cut::Client(error) => CloseReason::of(&error),
        Cut::Body => CloseReason::CutShort,
    })
}

struct DrivenAnswer<'a> {
    exchange: &'a mut Exchange,
    peer: &'a Peer,
    transfer: Transfer,
    rate: Option<RateLimit>,
    started_ms: u64,
    /// How long the client may take nothing.
    timeout_ms: u64,
    /// Whether the first byte of the connection is still to be sent.
    is_first: bool,
}

impl<'a> DrivenAnswer<'a> {
    fn new(exchange: &'a mut Exchange, peer: &'a Peer, transfer: Transfer) -> Self {
        Self {
            rate: exchange.rate_limit(),
            started_ms: exchange.lane.clock.now_ms(),
            timeout_ms: exchange.location().settings.send_timeout_ms,
            is_first: exchange.requester.requests() == 1,
            exchange,
            peer,
            transfer,
        }
    }

    async fn send(&mut self) -> Result<(), Cut> {
        while self.transfer.is_postponed(self.exchange) {
            self.make_piece().await?;
        }
        loop {
            let budget = self.budget();
            if budget == 0 {
                self.pause().await?;
                continue;
            }
            let transport = self.peer.transport();
            let sent = self.transfer.send(self.exchange, transport, budget);
            let sent = sent.map_err(Cut::Client)?;
            if !matches!(sent, Sent::Blocked) {
                self.note_first_byte();
            }
            match sent {
                Sent::All => return Ok(()),
                Sent::Slice => tokio::task::yield_now().await,
                Sent::Blocked => self.wait_for_client().await.map_err(Cut::Client)?,
                Sent::WantsFile => {
                    let read = self.transfer.read_file(self.exchange).await;
                    read.map_err(Cut::Client)?;
                }
                Sent::WantsPiece => self.next_piece().await?,
            }
        }
    }

    /// Bytes that may be sent now; 0: the rate limit allows none yet.
    fn budget(&self) -> u64 {
        let Some(rate) = &self.rate else {
            return SLICE_BYTES;
        };
        let allowed = rate.allowed(self.elapsed_ms());
        let left = allowed.saturating_sub(self.exchange.account.sent_bytes());
        left.min(SLICE_BYTES)
    }

    fn elapsed_ms(&self) -> u64 {
        let now_ms = self.exchange.lane.clock.now_ms();
        now_ms.saturating_sub(self.started_ms)
    }

    /// Waits until the rate limit allows a byte.
    async fn pause(&mut self) -> Result<(), Cut> {
        let elapsed_ms = self.elapsed_ms();
        let sent = self.exchange.account.sent_bytes();
        let pause_ms = self
            .rate
            .as_ref()
            .map(|rate| rate.pause_ms(sent, elapsed_ms));
        tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_millis(pause_ms.unwrap_or_default())) => Ok(()),
            () = self.peer.gone() => Err(Cut::Client(io::ErrorKind::ConnectionReset.into())),
            () = pieces::read_ahead(self.exchange, Client::Http1(self.peer)) => Ok(()),
        }
    }

    /// Waits until the socket takes more.
    async fn wait_for_client(&mut self) -> io::Result<()> {
        self.peer.is_full();
        tokio::select! {
            biased;
            waited = self.peer.writable(self.timeout_ms) => waited,
            () = pieces::read_ahead(self.exchange, Client::Http1(self.peer)) => Ok(()),
        }
    }

    /// Has all that is left of the body moved inside the kernel, or makes its next piece.
    async fn next_piece(&mut self) -> Result<(), Cut> {
        let is_raw = self.rate.is_none() && !self.transfer.is_chunked();
        if is_raw {
            let moved = splicing::pass_on(self.exchange, self.peer, self.timeout_ms).await?;
            if moved == Moved::All {
                self.transfer.ended = true;
                return Ok(());
            }
        }
        self.make_piece().await
    }

    async fn make_piece(&mut self) -> Result<(), Cut> {
        match pieces::next(self.exchange, Client::Http1(self.peer)).await {
            Some(more) => {
                let more = more.map_err(|_| Cut::Body)?;
                self.transfer.piece_ready(self.exchange, more);
            }
            None => self.transfer.ended = true,
        }
        Ok(())
    }

    fn note_first_byte(&mut self) {
        if std::mem::take(&mut self.is_first) {
            let accepted_ns = self.exchange.requester.connection().accepted_ns;
            let took_ns = monotonic_ns().saturating_sub(accepted_ns);
            self.exchange.lane.counters.first_byte.record(took_ns);
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
