//! Hosts in `Host` and in absolute request targets.
//!
//! The grammar is nginx's, which is wider than RFC 3986 in places (any mix of letters, digits and
//! sub-delimiters) and narrower in others (no empty host, no two dots in a row).

#[cfg(test)]
mod tests;

/// The parts of a valid host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Length in bytes of the name or address at the start of the text: without port, without
    /// final dot, but with the brackets of an IP literal.
    pub len: usize,
    /// The port; 0 if there is none.
    pub port: u16,
    /// Whether the name holds upper-case letters.
    pub upper: bool,
}

/// The text is not a host, a colon and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostError;

/// Checks `text` and finds the name in it.
///
/// # Errors
/// [`HostError`] if it is empty, holds a forbidden byte, or has a port above 65535.
pub fn validate(text: &[u8]) -> Result<Host, HostError> {
    let literal = text.first() == Some(&b'[');
    let allowed = if literal { LITERAL } else { NAME };
    let (mut seen, mut previous) = (0, 0);
    let mut end = usize::from(literal);
    while let Some(byte) = text.get(end) {
        let class = CLASS[usize::from(*byte)];
        if class & allowed == 0 || class & previous & DOT != 0 {
            break;
        }
        previous = class;
        seen |= class;
        end += 1;
    }
    let rest = &text[end..];
    let (len, rest) = match (literal, rest.first()) {
        (true, Some(b']')) => (end + 1, &rest[1..]),
        (true, _) => return Err(HostError),
        (false, _) => (end - usize::from(previous & DOT != 0), rest),
    };
    let port = match rest {
        [] => 0,
        [b':', digits @ ..] => parse_port(digits)?,
        _ => return Err(HostError),
    };
    if len == 0 {
        Err(HostError)
    } else {
        Ok(Host {
            len,
            port,
            upper: seen & UPPER != 0,
        })
    }
}

/// Appends a valid host in lower case.
pub fn lower_case(host: &[u8], out: &mut Vec<u8>) {
    out.extend(host.iter().map(u8::to_ascii_lowercase));
}

/// Decimal digits, possibly none.
fn parse_port(digits: &[u8]) -> Result<u16, HostError> {
    let mut port: u32 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        port = port * 10 + u32::from(digit);
        if digit > 9 || port > u32::from(u16::MAX) {
            return Err(HostError);
        }
    }
    u16::try_from(port).map_err(|_| HostError)
}

/// Allowed in a name.
const NAME: u8 = 1;
/// Allowed between brackets.
const LITERAL: u8 = 2;
const UPPER: u8 = 4;
const DOT: u8 = 8;

const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let both = b"0123456789abcdefghijklmnopqrstuvwxyz-._~!$&'()*+,;=";
    let mut index = 0;
    while index < both.len() {
        table[both[index] as usize] = NAME | LITERAL;
        index += 1;
    }
    let mut letter = b'A';
    while letter <= b'Z' {
        table[letter as usize] = NAME | LITERAL | UPPER;
        letter += 1;
    }
    table[b'.' as usize] |= DOT;
    table[b'%' as usize] = NAME;
    table[b':' as usize] = LITERAL;
    table
};
