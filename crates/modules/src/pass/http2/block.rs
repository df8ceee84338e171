//! The header block of a request.

use turnpike_wire::h2::hpack::{Encoder, Indexing};
use turnpike_wire::message::{Field, Known, RequestWriter};

/// Writes the head of a request as a header block. Its fields go into no table, so that the block
/// can be written again, and sent on any connection.
pub(crate) struct RequestBlock<'a> {
    encoder: Encoder,
    out: &'a mut Vec<u8>,
    is_secure: bool,
}

impl<'a> RequestBlock<'a> {
    /// Appends the block of a request to a server that is spoken to by TLS, or not.
    pub(crate) fn new(out: &'a mut Vec<u8>, is_secure: bool) -> Self {
        Self {
            encoder: Encoder::default(),
            out,
            is_secure,
        }
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.encoder.field(name, value, Indexing::No, self.out);
    }

    fn add_known(&mut self, known: Known, name: &[u8], value: &[u8]) {
        let value = value.trim_ascii();
        if may_be_sent(known, value) {
            self.add(name, value);
        }
    }
}

impl RequestWriter for RequestBlock<'_> {
    fn line(&mut self, method: &[u8], target: &[u8]) {
        self.add(b":method", method);
        self.add(b":scheme", if self.is_secure { b"https" } else { b"http" });
        self.add(b":path", target);
    }

    fn host(&mut self, host: &[u8]) {
        let host = host.trim_ascii();
        if !host.is_empty() {
            self.add(b":authority", host);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.add_known(Known::of(name), name, value);
    }

    fn span(&mut self, bytes: &[u8], field: &Field) {
        self.add_known(field.known, field.name.of(bytes), field.value.of(bytes));
    }
}

/// Whether a field may stand in a request of HTTP/2 (RFC 9113 section 8.2.2).
fn may_be_sent(known: Known, value: &[u8]) -> bool {
    match known {
        Known::Connection
        | Known::KeepAlive
        | Known::ProxyConnection
        | Known::TransferEncoding
        | Known::Upgrade => false,
        Known::Te => value.eq_ignore_ascii_case(b"trailers"),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
