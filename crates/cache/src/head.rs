//! Stored heads: the parts of a response's head that may be stored, and their file format.

use turnpike_wire::message::{Head, Version};

/// Fields of one connection, or of a client's authentication with a proxy, which are never stored
/// (RFC 9111 section 3.1; RFC 9110 section 7.6.1).
const CONNECTION_FIELDS: &[&[u8]] = &[
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"transfer-encoding",
    b"upgrade",
    b"proxy-authenticate",
    b"proxy-authentication-info",
    b"proxy-authorization",
];

/// Most fields of a head in a file; the parsers of heads allow fewer.
const FIELDS_MAX: u32 = 4096;

/// Removes the fields of one connection: the well-known ones, and those that `Connection` names
/// (RFC 9111 section 3.1).
pub fn remove_unstorable(head: &mut Head) {
    let named: Vec<Vec<u8>> = head
        .values(b"connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|name| name.trim_ascii().to_ascii_lowercase())
        .collect();
    head.fields.retain(|entry| {
        let lower = entry.name.to_ascii_lowercase();
        !CONNECTION_FIELDS.contains(&lower.as_slice()) && !named.contains(&lower)
    });
}

/// Appends a head in the file format: status, version, reason, number of fields, and each field
/// with its lengths. Numbers are little-endian.
pub(crate) fn encode(head: &Head, out: &mut Vec<u8>) {
    out.extend_from_slice(&head.status.to_le_bytes());
    out.push(match head.version {
        Version::Http09 => 9,
        Version::Http10 => 10,
        Version::Http11 => 11,
        Version::Http20 => 20,
        Version::Http30 => 30,
    });
    put_text(out, head.reason());
    out.extend_from_slice(&(head.fields.len() as u32).to_le_bytes());
    for (name, value) in head.fields.iter() {
        put_text(out, name);
        put_text(out, value);
    }
}

/// Reads the output of [`encode`]; `None` if it is malformed.
pub(crate) fn decode(input: &mut &[u8]) -> Option<Head> {
    let status = u16::from_le_bytes(take(input)?);
    let [version] = take(input)?;
    let mut head = Head::response(status, take_text(input)?);
    head.version = match version {
        9 => Version::Http09,
        10 => Version::Http10,
        11 => Version::Http11,
        20 => Version::Http20,
        30 => Version::Http30,
        _ => return None,
    };
    let count = u32::from_le_bytes(take(input)?);
    if count > FIELDS_MAX {
        return None;
    }
    for _ in 0..count {
        let name = take_text(input)?;
        let value = take_text(input)?;
        head.fields.add(name, value);
    }
    Some(head)
}

/// Appends a text with its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

/// Takes a text with its length.
pub(crate) fn take_text<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(input)?) as usize;
    let (text, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(text)
}

/// Takes `N` bytes.
pub(crate) fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*bytes)
}
