//! The protocols that `Upgrade` names (RFC 9110 section 7.8). HTTP/2 is never one of them: behind a
//! tunnel a server would answer requests that no location has seen.

use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::message::{Fields, Head, Known, RequestWriter, Version};

/// Upgrades that a client may ask a server for (RFC 9110 section 7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Upgrades {
    #[default]
    None,
    WebSocket,
    /// Of any protocol but HTTP/2.
    Any,
}

/// The token of HTTP/2 without TLS (RFC 7540 section 11.2). RFC 9113 has given it up, but servers
/// still switch to it.
const HTTP2: &[u8] = b"h2c";

/// Whether the client asked for the protocols that the server has switched to. HTTP/1.0 knows no
/// switching, and HTTP/2 only that by an extended CONNECT.
pub(crate) fn is_wanted(exchange: &Exchange, head: &Head) -> bool {
    let request = exchange.request().head();
    if request.version != Version::Http11 && !request.is_extended_connect {
        return false;
    }
    let mut switched = protocols(&head.fields).peekable();
    switched.peek().is_some()
        && switched.all(|own| {
            let mut asked = protocols(exchange.fields());
            !names_http2(own) && asked.any(|asked| asked.eq_ignore_ascii_case(own))
        })
}

/// The token of WebSockets (RFC 6455 section 11.2).
const WEBSOCKET: &[u8] = b"websocket";

/// The status of a server that wants another protocol (RFC 9110 section 15.5.22).
const UPGRADE_REQUIRED: u16 = 426;

/// Whether the client can switch, and asks for it.
fn asks(exchange: &Exchange) -> bool {
    let head = exchange.request().head();
    let says_so = head.version == Version::Http11 && head.connection.upgrade;
    says_so || head.is_extended_connect
}

fn is_websocket(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(WEBSOCKET)
}

/// Writes the fields of an upgrade that the client asks for, where it is one of these.
pub(crate) fn write(
    exchange: &Exchange,
    upgrades: Upgrades,
    scratch: &mut Vec<u8>,
    writer: &mut impl RequestWriter,
) {
    if upgrades == Upgrades::None || !asks(exchange) {
        return;
    }
    scratch.clear();
    for protocol in protocols(exchange.fields()) {
        let is_passed = match upgrades {
            Upgrades::Any => !names_http2(protocol),
            Upgrades::WebSocket | Upgrades::None => is_websocket(protocol),
        };
        if is_passed {
            let comma: &[u8] = if scratch.is_empty() { b"" } else { b", " };
            scratch.extend_from_slice(comma);
            scratch.extend_from_slice(protocol);
        }
    }
    if !scratch.is_empty() && exchange.may_send_value(scratch) {
        writer.field(b"Upgrade", scratch);
        writer.field(b"Connection", b"upgrade");
    }
}

/// Says in the log what is likely missing where a server wanted an upgrade, or refused one that a
/// client asked for, and the request had no field for it.
pub(crate) fn hint(exchange: &Exchange, head: &Head) {
    let asked = asks(exchange) && protocols(exchange.fields()).any(is_websocket);
    let is_refused = asked && head.status != 101;
    if head.status == UPGRADE_REQUIRED || is_refused {
        exchange.log(
            Level::Warn,
            format_args!(
                "upstream answered {} and the request to it had no \"Upgrade\": if it is for \
                 WebSockets, write \"proxy_websocket auto;\" in this location",
                head.status
            ),
        );
    }
}

/// Takes HTTP/2 out of a list of protocols; returns whether it was there.
pub(crate) fn remove_http2(list: &mut Vec<u8>) -> bool {
    if !elements(list).any(names_http2) {
        return false;
    }
    let others: Vec<&[u8]> = elements(list).filter(|one| !names_http2(one)).collect();
    *list = others.join(&b", "[..]);
    true
}

/// The elements of all `Upgrade` fields.
fn protocols(fields: &Fields) -> impl Iterator<Item = &[u8]> {
    let named = fields.entries().filter(|one| one.known == Known::Upgrade);
    named.flat_map(|field| elements(field.value))
}

fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let elements = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    elements.filter(|element| !element.is_empty())
}

/// Whether any word of an element is HTTP/2's token, or that of a draft (`h2c-14`): servers differ
/// in what they make of a version or a parameter beside it.
fn names_http2(element: &[u8]) -> bool {
    let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let mut words = element.split(|byte| !is_in_word(byte));
    words.any(|word| match word.split_at_checked(HTTP2.len()) {
        Some((name, rest)) => {
            name.eq_ignore_ascii_case(HTTP2) && matches!(rest.first(), None | Some(b'-'))
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    //! What is left of lists of protocols.

    use super::remove_http2;

    /// A list, and what is passed on of it; the same text where nothing is taken out.
    const LISTS: &[(&str, &str)] = &[
        ("h2c", ""),
        ("H2C", ""),
        (" h2c ,", ""),
        ("websocket", "websocket"),
        ("websocket,h2c", "websocket"),
        ("h2c, SPDY/3.1, tcp", "SPDY/3.1, tcp"),
        ("a ,, b", "a ,, b"),
        ("a ,, b, h2c", "a, b"),
        ("h2c/1, a", "a"),
        ("a, \"h2c\", h2c;q=1, h2c a, a h2c", "a"),
        ("h2c-14, a", "a"),
        ("h2cx, xh2c, x-h2c, h2, h", "h2cx, xh2c, x-h2c, h2, h"),
        ("", ""),
    ];

    #[test]
    fn http2_is_taken_out_of_lists() {
        for (list, expected) in LISTS {
            let mut left = list.as_bytes().to_vec();
            let is_changed = remove_http2(&mut left);
            assert_eq!(String::from_utf8_lossy(&left), *expected, "{list:?}");
            assert_eq!(is_changed, list != expected, "{list:?}");
        }
    }
}
