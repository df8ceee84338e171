//! A reader of the TLS ClientHello (RFC 8446 section 4.1.2) for a server that does not terminate
//! TLS: the version, server name and protocols that the client offers.
//!
//! The values are unauthenticated. They only choose the route of the connection.

pub mod ja4;
#[cfg(test)]
mod tests;

/// The values of a ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The highest version that the client offers, in wire format: 0x0303 is TLS 1.2.
    pub version: u16,
    /// The name in `server_name` (RFC 6066 section 3), as sent; empty if there is none.
    pub server_name: Vec<u8>,
    /// The protocols of ALPN (RFC 7301) in their order, separated by commas.
    pub protocols: Vec<u8>,
}

/// The bytes are not the start of a ClientHello; more bytes cannot change that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHello;

const RECORD_HEADER_BYTES: usize = 5;
const HANDSHAKE_HEADER_BYTES: usize = 4;
const RANDOM_BYTES: usize = 32;

const RECORD_HANDSHAKE: u8 = 22;
const MESSAGE_CLIENT_HELLO: u8 = 1;

const EXTENSION_SERVER_NAME: u16 = 0;
const EXTENSION_PROTOCOLS: u16 = 16;
const EXTENSION_VERSIONS: u16 = 43;

const NAME_HOST: u8 = 0;

const TLS_1_3: u16 = 0x0304;
/// The high byte of the version numbers of TLS 1.3's drafts.
const TLS_1_3_DRAFT: u8 = 0x7f;

/// Reads a ClientHello, which may span several records. `Ok(None)`: more bytes are needed. Bytes
/// after it are not read.
///
/// # Errors
/// The bytes are not the start of a ClientHello.
pub fn read(bytes: &[u8]) -> Result<Option<ClientHello>, NotHello> {
    if let Some(old) = read_version_2(bytes) {
        return old;
    }
    match complete_body(bytes)? {
        Some(body) => hello(&body).map(Some).ok_or(NotHello),
        None => Ok(None),
    }
}

/// Collects the body of a ClientHello from its records; `Ok(None)`: more bytes are needed.
fn complete_body(bytes: &[u8]) -> Result<Option<Vec<u8>>, NotHello> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(body) = whole_body(&message)? {
            return Ok(Some(body.to_vec()));
        }
        if rest
            .iter()
            .zip([RECORD_HANDSHAKE, 3])
            .any(|(byte, wanted)| *byte != wanted)
        {
            return Err(NotHello);
        }
        let Some((header, more)) = rest.split_first_chunk::<RECORD_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length == 0 {
            // Empty records would keep the reader waiting without limit.
            return Err(NotHello);
        }
        let (fragment, behind) = more.split_at(length.min(more.len()));
        message.extend_from_slice(fragment);
        if fragment.len() < length && whole_body(&message)?.is_none() {
            return Ok(None);
        }
        rest = behind;
    }
}

/// Reads an SSL 2.0 ClientHello, which clients of SSL 3.0 and TLS 1.0 may send (RFC 5246 appendix
/// E.2): it has a version and no extensions. `None` if it is of another kind.
fn read_version_2(bytes: &[u8]) -> Option<Result<Option<ClientHello>, NotHello>> {
    bytes.first().filter(|first| **first & 0x80 != 0)?;
    let Some([_, _, kind, major, minor]) = bytes.first_chunk() else {
        return Some(Ok(None));
    };
    Some(match (*kind, *major) {
        (MESSAGE_CLIENT_HELLO, 0 | 3) => Ok(Some(ClientHello {
            version: u16::from_be_bytes([*major, *minor]),
            ..ClientHello::default()
        })),
        _ => Err(NotHello),
    })
}

/// The body of a handshake message once it is complete.
fn whole_body(message: &[u8]) -> Result<Option<&[u8]>, NotHello> {
    if message
        .first()
        .is_some_and(|kind| *kind != MESSAGE_CLIENT_HELLO)
    {
        return Err(NotHello);
    }
    let Some((header, rest)) = message.split_first_chunk::<HANDSHAKE_HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, header[1], header[2], header[3]]);
    Ok(rest.get(..length as usize))
}

/// Reads a body; `None` if its lengths are inconsistent.
fn hello(body: &[u8]) -> Option<ClientHello> {
    let mut reader = Reader(body);
    let mut hello = ClientHello {
        version: reader.number()?,
        ..ClientHello::default()
    };
    reader.take(RANDOM_BYTES)?;
    let session = reader.byte()?;
    reader.take(usize::from(session))?;
    let ciphers = reader.number()?;
    reader.take(usize::from(ciphers))?;
    let compressions = reader.byte()?;
    reader.take(usize::from(compressions))?;
    let Some(length) = reader.number() else {
        return Some(hello);
    };
    let mut extensions = Reader(reader.up_to(length));
    while let Some(kind) = extensions.number() {
        let length = extensions.number()?;
        // A length that is too large is an error only if it cuts off an extension.
        let mut value = Reader(extensions.up_to(length));
        match kind {
            EXTENSION_SERVER_NAME => hello.server_name = server_name(&mut value)?,
            EXTENSION_PROTOCOLS => hello.protocols = protocols(&mut value)?,
            EXTENSION_VERSIONS => hello.version = version(&mut value)?.max(hello.version),
            _ => {}
        }
    }
    Some(hello)
}

fn server_name(value: &mut Reader<'_>) -> Option<Vec<u8>> {
    let length = value.number()?;
    let mut names = Reader(value.take(usize::from(length))?);
    while let Some(kind) = names.byte() {
        let length = names.number()?;
        let name = names.take(usize::from(length))?;
        if kind == NAME_HOST {
            return Some(name.to_vec());
        }
    }
    Some(Vec::new())
}

fn protocols(value: &mut Reader<'_>) -> Option<Vec<u8>> {
    let length = value.number()?;
    let mut names = Reader(value.take(usize::from(length))?);
    let mut list = Vec::new();
    while let Some(length) = names.byte() {
        if !list.is_empty() {
            list.push(b',');
        }
        list.extend_from_slice(names.take(usize::from(length))?);
    }
    Some(list)
}

/// The highest known version in the list; 0 if there is none.
fn version(value: &mut Reader<'_>) -> Option<u16> {
    let length = value.byte()?;
    let mut versions = Reader(value.take(usize::from(length))?);
    let mut highest = 0;
    while let Some(version) = versions.number() {
        let known = match version.to_be_bytes() {
            [TLS_1_3_DRAFT, _] => TLS_1_3,
            [3, 0..=4] => version,
            _ => 0,
        };
        highest = highest.max(known);
    }
    Some(highest)
}

/// A cursor that takes bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn up_to(&mut self, count: u16) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(usize::from(count).min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn number(&mut self) -> Option<u16> {
        let taken = self.take(2)?;
        Some(u16::from_be_bytes([taken[0], taken[1]]))
    }
}
