//! Streamed bodies: pieces are asked for, framed and put into the output.
//!
//! While the stream works, it is out of the exchange, so that it may change the exchange.

use turnpike_wire::h1;

use super::head;
use super::transfer::Transfer;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::{Body, BodyFailed, BodyStream};

/// Begins to send a response whose head stands in the output. What a streamed body has at hand
/// leaves together with the head.
pub(super) fn begin(exchange: &mut Exchange, chunked: bool) -> Result<Transfer, BodyFailed> {
    let head_bytes = exchange.output.len();
    let ready = match take(exchange) {
        Some(mut body) => {
            let mut piece = std::mem::take(&mut exchange.response.text);
            piece.clear();
            let more = body.ready(exchange, &mut piece);
            put_back(exchange, body, piece);
            more
        }
        None => None,
    };
    let mut transfer = Transfer::new(exchange, chunked);
    if let Some(more) = ready {
        frame(exchange, &mut transfer, more?);
    }
    debug_assert!(exchange.output.len() >= head_bytes);
    Ok(transfer)
}

/// Makes the next piece.
pub(super) async fn next(
    exchange: &mut Exchange,
    client: Client<'_>,
    transfer: &mut Transfer,
) -> Result<(), BodyFailed> {
    let Some(mut body) = take(exchange) else {
        transfer.ended = true;
        return Ok(());
    };
    let mut piece = std::mem::take(&mut exchange.response.text);
    piece.clear();
    let more = body.next(exchange, client, &mut piece).await;
    put_back(exchange, body, piece);
    exchange.output.clear();
    frame(exchange, transfer, more?);
    transfer.piece_ready();
    Ok(())
}

/// Lets the body read ahead, as long as the caller waits for something else. Never ends.
pub(super) async fn read_ahead(exchange: &mut Exchange) {
    let Some(body) = take(exchange) else {
        return std::future::pending().await;
    };
    let mut held = Held {
        exchange,
        body: Some(body),
    };
    if let Held {
        exchange,
        body: Some(body),
    } = &mut held
    {
        body.read_ahead(exchange).await;
    }
    std::future::pending().await
}

/// A stream outside of its exchange, put back when the wait is over.
struct Held<'a> {
    exchange: &'a mut Exchange,
    body: Option<Box<dyn BodyStream>>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.exchange.response.body = Body::Stream(body);
        }
    }
}

fn take(exchange: &mut Exchange) -> Option<Box<dyn BodyStream>> {
    if exchange.response.head_only || !matches!(exchange.response.body, Body::Stream(_)) {
        return None;
    }
    match std::mem::take(&mut exchange.response.body) {
        Body::Stream(body) => Some(body),
        _ => None,
    }
}

fn put_back(exchange: &mut Exchange, body: Box<dyn BodyStream>, piece: Vec<u8>) {
    exchange.response.body = Body::Stream(body);
    exchange.response.text = piece;
}

/// Appends the piece to the output, as a chunk where the body is sent in chunks.
fn frame(exchange: &mut Exchange, transfer: &mut Transfer, more: bool) {
    let (out, response) = (&mut exchange.output, &exchange.response);
    let piece = &response.text;
    if transfer.chunked && !piece.is_empty() {
        h1::write_chunk_head(out, piece.len() as u64);
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    } else {
        out.extend_from_slice(piece);
    }
    if more {
        return;
    }
    transfer.ended = true;
    if !transfer.chunked {
        return;
    }
    if response.trailers.is_empty() {
        out.extend_from_slice(h1::LAST_CHUNK);
        return;
    }
    out.extend_from_slice(b"0\r\n");
    let mut out = std::mem::take(&mut exchange.output);
    for (name, value) in exchange.response.trailers.iter() {
        if head::may_send(exchange, name, value) {
            for part in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
    }
    h1::end(&mut out);
    exchange.output = out;
}
