//! The field `Forwarded` (RFC 7239) with this hop added.

use std::io::Write;
use std::net::IpAddr;

use turnpike_http::exchange::Exchange;
use turnpike_lane::sys::socket::PeerAddress;

/// `$proxy_add_forwarded`: the client's fields if they follow the grammar, then the client's own
/// address and protocol. Fields that do not are left out: behind an open quote, what is added
/// would be taken for a part of them.
pub(super) fn add(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    for value in exchange.fields().values(b"Forwarded") {
        if is_list(value) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    node(exchange.requester.peer(), out);
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(exchange.scheme().as_bytes());
    true
}

/// Writes `for=` and the node (section 6): IPv6 addresses in brackets and quotes.
fn node(peer: PeerAddress, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = match peer {
        PeerAddress::Inet(address) => match address.ip().to_canonical() {
            IpAddr::V4(address) => write!(out, "for={address}"),
            IpAddr::V6(address) => write!(out, "for=\"[{address}]\""),
        },
        PeerAddress::Unix => write!(out, "for=unknown"),
    };
}

/// Whether a field is a list of elements with pairs (section 4).
fn is_list(mut text: &[u8]) -> bool {
    if text.is_empty() {
        return false;
    }
    loop {
        text = text.trim_ascii_start();
        if !matches!(text.first(), None | Some(b',' | b';')) {
            let Some(rest) = after_pair(text) else {
                return false;
            };
            text = rest.trim_ascii_start();
        }
        match text {
            [] => return true,
            [b',' | b';', rest @ ..] => text = rest,
            _ => return false,
        }
    }
}

/// What stands behind `token=token` or `token="text"`.
fn after_pair(text: &[u8]) -> Option<&[u8]> {
    let rest = after_token(text)?.strip_prefix(b"=")?;
    match rest.strip_prefix(b"\"") {
        Some(quoted) => after_quoted(quoted),
        None => after_token(rest),
    }
}

fn after_token(text: &[u8]) -> Option<&[u8]> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = text.iter().position(|byte| !is_token(byte));
    let end = end.unwrap_or(text.len());
    (end > 0).then(|| &text[end..])
}

fn after_quoted(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        match text {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', _, rest @ ..] => text = rest,
            [b'\\'] | [] => return None,
            [_, rest @ ..] => text = rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use turnpike_lane::sys::socket::PeerAddress;

    #[test]
    fn fields_that_follow_the_grammar_are_known() {
        for (text, expected) in [
            ("for=192.0.2.43", true),
            ("For=\"[2001:db8:cafe::17]:4711\"", true),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", true),
            ("for=192.0.2.43, for=198.51.100.17;host=\"a,b\"", true),
            ("for=\"a\\\"b\"", true),
            (",for=a;;proto=b,", true),
            ("", false),
            ("for=\"open", false),
            ("for=\"open\\", false),
            ("for=[2001:db8::1]", false),
            ("for", false),
            ("for=", false),
            ("for=a b=c", false),
            ("=a", false),
        ] {
            assert_eq!(super::is_list(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn nodes_are_written_as_the_grammar_wants() {
        let inet = |text: &str| PeerAddress::Inet(text.parse().expect(text));
        for (peer, expected) in [
            (inet("192.0.2.1:80"), "for=192.0.2.1"),
            (inet("[2001:db8::1]:80"), "for=\"[2001:db8::1]\""),
            (inet("[::ffff:192.0.2.1]:80"), "for=192.0.2.1"),
            (PeerAddress::Unix, "for=unknown"),
        ] {
            let mut out = Vec::new();
            super::node(peer, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
