//! Bytes of a body that go from a server's socket to the client's inside the kernel, since nobody
//! has to look at them.
//!
//! ```text
//!  server's socket ─fill─► pipe ─drain─► client's socket
//!        │ nothing there: wait             │ full: the body is read ahead, and goes on as pieces
//! ```

use std::io;
use std::rc::Rc;

use turnpike_lane::pipes::{self, Lent};

use super::answer::{Cut, SLICE_BYTES};
use crate::client::Client;
use crate::exchange::{Action, Exchange};
use crate::h1::peer::Peer;
use crate::pieces;
use crate::response::BodyStream;

/// How far bytes were moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// The client has the whole body.
    All,
    /// The next bytes are to be sent as a piece.
    WantsPiece,
}

/// Moves the body of the response on, as long as nobody has to look at it. `timeout_ms`: how long
/// the client may take nothing.
pub(super) async fn pass_on(
    exchange: &mut Exchange,
    peer: &Peer,
    timeout_ms: u64,
) -> Result<Moved, Cut> {
    let pipes = Rc::clone(exchange.lane.pipes());
    let Some(mut held) = pieces::hold(exchange).filter(|_| peer.transport().is_plain()) else {
        return Ok(Moved::WantsPiece);
    };
    let (exchange, body) = held.parts();
    let mut slice_bytes = 0;
    loop {
        let Some(source) = body.source(exchange) else {
            return Ok(Moved::WantsPiece);
        };
        let Some(lent) = pipes.lend() else {
            return Ok(Moved::WantsPiece);
        };
        let bytes_max = usize::try_from(source.bytes).unwrap_or(usize::MAX);
        let filled = source
            .socket
            .try_fill(&lent.pipe, bytes_max.min(pipes::BYTES_MAX));
        let bytes = match &filled {
            Ok(bytes) => *bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                lent.give_back();
                let ready = body.source_ready(exchange, Client::Http1(peer)).await;
                ready.map_err(|_| Cut::Body)?;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Moved::WantsPiece);
            }
            Err(_) => 0,
        };
        let more = body.moved(exchange, filled).map_err(|_| Cut::Body)?;
        exchange.account.set_action(Action::Sending);
        drain(exchange, body, peer, &lent, bytes, timeout_ms).await?;
        lent.give_back();
        if !more {
            return Ok(Moved::All);
        }
        slice_bytes += bytes as u64;
        if slice_bytes >= SLICE_BYTES {
            slice_bytes = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Sends the `bytes` that the pipe holds.
async fn drain(
    exchange: &mut Exchange,
    body: &mut dyn BodyStream,
    peer: &Peer,
    lent: &Lent,
    bytes: usize,
    timeout_ms: u64,
) -> Result<(), Cut> {
    let mut left = bytes;
    while left > 0 {
        match peer.transport().try_drain(&lent.pipe, left) {
            Ok(0) => return Err(Cut::Client(io::ErrorKind::WriteZero.into())),
            Ok(sent) => {
                exchange.account.sent(sent as u64);
                left -= sent;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                peer.is_full();
                let waited = tokio::select! {
                    biased;
                    waited = peer.writable(timeout_ms) => waited,
                    () = body.read_ahead(exchange, Client::Http1(peer)) => Ok(()),
                };
                waited.map_err(Cut::Client)?;
            }
            Err(error) => return Err(Cut::Client(error)),
        }
    }
    Ok(())
}
