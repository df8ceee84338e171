//! The header block of a request, made of its head as HTTP/1 writes it: there is one writer of
//! heads, so that both versions say the same.

use turnpike_wire::h2::hpack::{Encoder, Indexing};
use turnpike_wire::message::Known;

/// The field that has the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    /// As `:authority`.
    Pseudo,
    /// As a field: nginx sends one that `grpc_set_header` sets so.
    Field,
}

/// Appends the block of a head that was written for HTTP/1. Its fields go into no table, so that
/// the block can be written again, and sent on any connection.
pub(crate) fn write_block(head: &[u8], is_secure: bool, authority: Authority, out: &mut Vec<u8>) {
    let mut encoder = Encoder::default();
    let mut field = |name: &[u8], value: &[u8]| encoder.field(name, value, Indexing::No, out);
    let mut lines = lines(head);
    let line = lines.next().unwrap_or_default();
    // The target holds no space: it was escaped when it was written.
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next(), words.next());
    field(b":method", method.unwrap_or_default());
    field(b":scheme", if is_secure { b"https" } else { b"http" });
    field(b":path", target.unwrap_or_default());
    let host = lines.clone().map(split);
    let host = host.filter(|(name, _)| Known::of(name) == Known::Host);
    if authority == Authority::Pseudo
        && let Some((_, host)) = host.clone().next()
        && !host.is_empty()
    {
        field(b":authority", host);
    }
    for (name, value) in lines.map(split) {
        let is_sent = match Known::of(name) {
            Known::Host => authority == Authority::Field && !value.is_empty(),
            known => may_be_sent(known, value),
        };
        if is_sent {
            field(name, value);
        }
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

/// The lines of a head, without the empty one at its end.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let lines = head.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty())
}

fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let value = line.get(colon + 1..).unwrap_or_default();
    (&line[..colon], value.trim_ascii())
}

#[cfg(test)]
mod tests;
