//! The PROXY protocol, versions 1 and 2: the client's address of a proxied connection.
//!
//! A header comes once, before all other bytes of a connection. The grammar is nginx's, but a
//! header may come in pieces. Its checksum is not verified, as in nginx.

use core::net::{IpAddr, SocketAddr};

use crate::Span;

mod tlv;
mod write;

#[cfg(test)]
mod tests;

pub use tlv::{Kind, SslSummary, Tlv, TlvError, find_named_tlv, find_ssl, find_tlv};
pub use write::{Ssl, TooLong, Transport, write_v1, write_v2};

/// Longest header of version 1 in bytes, by its specification.
pub const V1_BYTES_MAX: usize = 107;

/// Longest accepted header of version 2 in bytes; nginx's limit.
pub const V2_BYTES_MAX: usize = 4096;

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes the header takes in the buffer.
    pub len: usize,
    /// The addresses; `None` if the sender does not know them or opened the connection itself. The
    /// addresses of the connection count then.
    pub addresses: Option<Addresses>,
    /// The additions of version 2, for [`find_tlv`]; empty without addresses.
    pub tlvs: Span,
}

/// Both ends of the connection that the sender accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The client.
    pub source: SocketAddr,
    /// The address the client connected to.
    pub destination: SocketAddr,
    /// The client's address as written in version 1; empty in version 2.
    pub source_text: Span,
    /// The other address as written in version 1; empty in version 2.
    pub destination_text: Span,
}

/// Why a header was refused; the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyProtocolError {
    /// A malformed header, or no header.
    Broken,
    /// A header of version 2's form with another version.
    UnknownVersion,
    /// A header of version 2 longer than `V2_BYTES_MAX`.
    TooLarge,
}

impl ProxyProtocolError {
    /// The first words of nginx's log message.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            ProxyProtocolError::Broken => "broken header",
            ProxyProtocolError::UnknownVersion => "unknown PROXY protocol version",
            ProxyProtocolError::TooLarge => "header is too large",
        }
    }
}

/// Parses the header at the start of `buffer`; `None` asks for more bytes.
///
/// # Errors
/// One [`ProxyProtocolError`] for each cause, as soon as it is known.
pub fn parse(buffer: &[u8]) -> Result<Option<Header>, ProxyProtocolError> {
    let known = buffer.len().min(SIGNATURE.len());
    if buffer[..known] == SIGNATURE[..known] {
        return parse_v2(buffer);
    }
    let known = buffer.len().min(V1_START.len());
    if buffer[..known] != V1_START[..known] {
        return Err(ProxyProtocolError::Broken);
    }
    let window = &buffer[..buffer.len().min(V1_BYTES_MAX)];
    match memchr::memmem::find(window, b"\r\n") {
        Some(end) => parse_v1(window, end)
            .map(Some)
            .ok_or(ProxyProtocolError::Broken),
        None if window.len() < V1_BYTES_MAX && may_begin_v1(window) => Ok(None),
        None => Err(ProxyProtocolError::Broken),
    }
}

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const V1_START: &[u8; 6] = b"PROXY ";

/// The text after the start of version 1.
const V1_FAMILIES: [&[u8]; 3] = [b"TCP4 ", b"TCP6 ", b"UNKNOWN"];

/// Signature, version and command, family and transport, length.
const V2_FIXED_BYTES: usize = 16;

const COMMAND_PROXY: u8 = 1;
const TRANSPORT_STREAM: u8 = 1;
const TRANSPORT_DATAGRAM: u8 = 2;
const FAMILY_INET: u8 = 1;
const FAMILY_INET6: u8 = 2;

/// Whether these bytes can be the start of a line of version 1: if not, the connection need not
/// wait for the time-out.
fn may_begin_v1(beginning: &[u8]) -> bool {
    let text = beginning.get(V1_START.len()..).unwrap_or_default();
    V1_FAMILIES.iter().any(|family| {
        let known = text.len().min(family.len());
        text[..known] == family[..known]
    })
}

/// Parses the line of version 1, which ends at `end`.
fn parse_v1(line: &[u8], end: usize) -> Option<Header> {
    let len = end + 2;
    let text = line.get(V1_START.len()..end)?;
    if text.starts_with(b"UNKNOWN") {
        return Some(Header {
            len,
            addresses: None,
            tlvs: Span::EMPTY,
        });
    }
    if !text.starts_with(b"TCP4 ") && !text.starts_with(b"TCP6 ") {
        return None;
    }
    let mut at = V1_START.len() + b"TCP4 ".len();
    let mut part = || {
        let rest = line.get(at..end)?;
        let length = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let span = Span::new(at, at + length);
        at += length + 1;
        Some(span)
    };
    let (source_text, destination_text) = (part()?, part()?);
    let (source_port, destination_port) = (part()?, part()?);
    if destination_port.end() != end {
        return None;
    }
    let address = |address: Span, port: Span| {
        let ip: IpAddr = std::str::from_utf8(address.of(line)).ok()?.parse().ok()?;
        let digits = port.of(line);
        let port = std::str::from_utf8(digits)
            .ok()
            .filter(|_| !digits.starts_with(b"+"))?;
        Some(SocketAddr::new(ip, port.parse().ok()?))
    };
    let addresses = Addresses {
        source: address(source_text, source_port)?,
        destination: address(destination_text, destination_port)?,
        source_text,
        destination_text,
    };
    Some(Header {
        len,
        addresses: Some(addresses),
        tlvs: Span::EMPTY,
    })
}

fn parse_v2(buffer: &[u8]) -> Result<Option<Header>, ProxyProtocolError> {
    match buffer.get(SIGNATURE.len()) {
        None => return Ok(None),
        Some(byte) if byte >> 4 != 2 => return Err(ProxyProtocolError::UnknownVersion),
        Some(_) => {}
    }
    let Some(fixed) = buffer.first_chunk::<V2_FIXED_BYTES>() else {
        return Ok(None);
    };
    let [.., command, transport, high, low] = *fixed;
    let len = V2_FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if len > V2_BYTES_MAX {
        return Err(ProxyProtocolError::TooLarge);
    }
    let Some(body) = buffer.get(V2_FIXED_BYTES..len) else {
        return Ok(None);
    };
    let nothing = Header {
        len,
        addresses: None,
        tlvs: Span::EMPTY,
    };
    if command & 15 != COMMAND_PROXY || transport & 15 != TRANSPORT_STREAM {
        return Ok(Some(nothing));
    }
    let (ends, address_bytes) = match transport >> 4 {
        FAMILY_INET => (inet_ends::<4>(body), 12),
        FAMILY_INET6 => (inet_ends::<16>(body), 36),
        _ => return Ok(Some(nothing)),
    };
    let (source, destination) = ends.ok_or(ProxyProtocolError::Broken)?;
    let (source_text, destination_text) = (Span::EMPTY, Span::EMPTY);
    let addresses = Addresses {
        source,
        destination,
        source_text,
        destination_text,
    };
    let tlvs = Span::new(V2_FIXED_BYTES + address_bytes, len);
    Ok(Some(Header {
        len,
        addresses: Some(addresses),
        tlvs,
    }))
}

/// Two addresses of `N` bytes, then their ports.
fn inet_ends<const N: usize>(body: &[u8]) -> Option<(SocketAddr, SocketAddr)>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = body.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let ports = rest.first_chunk::<4>()?;
    let source_port = u16::from_be_bytes([ports[0], ports[1]]);
    let destination_port = u16::from_be_bytes([ports[2], ports[3]]);
    let source = SocketAddr::new(IpAddr::from(*source), source_port);
    Some((
        source,
        SocketAddr::new(IpAddr::from(*destination), destination_port),
    ))
}
