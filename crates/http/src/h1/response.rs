//! The response as HTTP/1 sends it: the head as lines, the body in chunks where its length is not
//! known.

use turnpike_wire::h1;
use turnpike_wire::message::{BodyLength, Field, Version};

use crate::exchange::Exchange;
use crate::response::Body;
use crate::response_head::{self, HeadWriter};

/// Writes the head of the exchange's response into its output, and settles what only the head can
/// settle: whether the body is chunked and whether the connection is kept.
///
/// Returns whether the body is to be sent chunked.
pub(crate) fn write_head(exchange: &mut Exchange) -> bool {
    response_head::prepare(exchange);
    let mut out = std::mem::take(exchange.sending.output());
    out.clear();
    let has_body = exchange.body_length() != BodyLength::None;
    if has_body && exchange.response.status() < 300 && exchange.take_expect() {
        out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    if exchange.lane.shutdown.is_draining() {
        exchange.sending.close_connection();
    }
    let chunked = settle_framing(exchange);
    exchange.sending.send_chunked(chunked);
    if exchange.request().head().version != Version::Http09 {
        let mut lines = Lines(&mut out);
        response_head::write(exchange, &mut lines);
        h1::end(&mut out);
    }
    // Interim responses were sent before.
    exchange.account.head_written(out.len() as u64);
    *exchange.sending.output() = out;
    chunked
}

/// Appends what stands before the data of a chunk.
pub(crate) fn write_chunk_head(length: usize, out: &mut Vec<u8>) {
    h1::write_chunk_head(out, length as u64);
}

/// Appends the end of a body that is sent in chunks, and the fields behind it.
pub(crate) fn write_last_chunk(exchange: &Exchange, out: &mut Vec<u8>) {
    if exchange.response.trailers().is_empty() {
        out.extend_from_slice(h1::LAST_CHUNK);
        return;
    }
    out.extend_from_slice(b"0\r\n");
    for (name, value) in exchange.response.trailers().iter() {
        if response_head::may_send(exchange, name, value) {
            for part in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
    }
    h1::end(out);
}

/// A body of unknown length is chunked for HTTP/1.1, else it ends with the connection.
fn settle_framing(exchange: &mut Exchange) -> bool {
    if exchange.request().head().version == Version::Http09 {
        exchange.sending.close_connection();
        return false;
    }
    if !response_head::has_unknown_length(exchange) {
        return false;
    }
    let settings = &exchange.location().settings;
    if exchange.request().head().version == Version::Http11 && settings.chunked_transfer_encoding {
        return true;
    }
    exchange.sending.close_connection();
    false
}

/// A head as lines.
struct Lines<'a>(&'a mut Vec<u8>);

impl HeadWriter for Lines<'_> {
    fn status(&mut self, status: u16, reason: &str) {
        h1::status_line(self.0, Version::Http11, status, reason);
    }

    #[inline(always)]
    fn field(&mut self, name: &str, value: &[u8]) {
        h1::field(self.0, name.as_bytes(), value);
    }

    fn span(&mut self, bytes: &[u8], field: &Field) {
        h1::write_field(self.0, bytes, field);
    }

    fn connection(&mut self, exchange: &Exchange) {
        if exchange.sending.is_chunked() {
            self.field("Transfer-Encoding", b"chunked");
        }
        if exchange.response.status() == 101 {
            self.field("Connection", b"upgrade");
            return;
        }
        if matches!(exchange.response.body(), Body::Tunnel(_)) {
            // What follows is not HTTP, and the client decides when it ends.
            return;
        }
        if !exchange.sending.keeps_connection() {
            self.field("Connection", b"close");
            return;
        }
        self.field("Connection", b"keep-alive");
        if let Some(seconds) = exchange.location().settings.keepalive_header_s {
            self.0.extend_from_slice(b"Keep-Alive: timeout=");
            crate::variables::append_number(self.0, seconds);
            self.0.extend_from_slice(b"\r\n");
        }
    }
}
