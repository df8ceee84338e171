//! What a message on its way through says of that: `Via`, and how far it may go on.

use turnpike_conf::{ConfError, View, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_wire::message::{Method, RequestWriter, Version, decimal};

/// The name of this server in `via on`: a pseudonym does not show the names of machines.
const PSEUDONYM: &str = "turnpike";

/// `Max-Forwards` (RFC 9110 section 7.6.2).
const MAX_FORWARDS: &[u8] = b"Max-Forwards";

/// Reads `via`: the name under which this server enters itself, where it does.
///
/// # Errors
/// When the name is neither a token nor a host.
pub(crate) fn read_via(view: View<'_>) -> Result<Option<Vec<u8>>, ConfError> {
    let Some(entry) = view.nearest("via") else {
        return Ok(None);
    };
    let name = match entry.argument(0) {
        "off" => return Ok(None),
        "on" => PSEUDONYM,
        name => name,
    };
    let stands = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:[]".contains(&byte);
    if name.is_empty() || !name.bytes().all(stands) {
        let message = format!(
            "invalid name \"{name}\" in \"via\": it must be \"on\", \"off\", a host with or \
             without a port, or a token"
        );
        return Err(view.error(entry.span, message));
    }
    Ok(Some(bytes_of(name)))
}

/// Appends the value of `Via` for a message that was received in this version (RFC 9110 section
/// 7.6.3).
pub(super) fn write_via(received: Version, name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(match received {
        Version::Http09 => b"0.9 ",
        Version::Http10 => b"1.0 ",
        Version::Http11 => b"1.1 ",
        Version::Http20 => b"2.0 ",
        Version::Http30 => b"3.0 ",
    });
    out.extend_from_slice(name);
}

/// Whether the client wants its `OPTIONS` answered here: no further server is to be asked. `TRACE`,
/// the other method with such a limit, is never passed on.
pub(super) fn ends_here(exchange: &Exchange) -> bool {
    let mut limits = exchange.fields().values(MAX_FORWARDS);
    exchange.method() == Method::Options && limits.any(|limit| decimal(limit) == Some(0))
}

/// Writes the limit with one taken off, where the field is one and its value a number.
pub(super) fn write_lowered(
    exchange: &Exchange,
    name: &[u8],
    value: &[u8],
    writer: &mut impl RequestWriter,
) -> bool {
    if exchange.method() != Method::Options || !name.eq_ignore_ascii_case(MAX_FORWARDS) {
        return false;
    }
    let Some(hops) = decimal(value) else {
        return false;
    };
    writer.number(MAX_FORWARDS, hops.saturating_sub(1));
    true
}
