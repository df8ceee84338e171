//! The handshake of WebSockets with servers, for clients that have none of their own: an extended
//! CONNECT (RFC 8441 section 5) leaves it to us.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use turnpike_http::base64;
use turnpike_http::exchange::Exchange;
use turnpike_wire::message::Head;

/// The text that RFC 6455 section 1.3 has behind the key.
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The field by which a server shows that it has understood the handshake.
pub(crate) const ACCEPT: &[u8] = b"Sec-WebSocket-Accept";

/// Whether a switch of protocols is one that the client may be told of: clients of HTTP/1 check the
/// handshake of a WebSocket themselves.
pub(crate) fn is_accepted(exchange: &Exchange, head: &Head) -> bool {
    let Some(key) = exchange.field(b"Sec-WebSocket-Key") else {
        return true;
    };
    if !exchange.request().head().is_extended_connect {
        return true;
    }
    let expected = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, SUFFIX].concat());
    let expected = base64::encode(expected.as_ref());
    head.value(ACCEPT) == Some(expected.as_bytes())
}
