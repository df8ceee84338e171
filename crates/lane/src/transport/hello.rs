//! The start of a TLS session: the ClientHello names the server, which determines the certificate.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustls::server::{Accepted, AcceptedAlert, Acceptor, ClientHello};
use rustls::{InvalidMessage, PeerIncompatible, PeerMisbehaved, ServerConfig};
use turnpike_wire::client_hello::{self, ja4};

use super::Transport;
use super::session::{Session, Sink};

/// Alerts (RFC 8446 section 6, RFC 6066 section 3).
const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const HANDSHAKE_FAILURE: u8 = 40;
const DECODE_ERROR: u8 = 50;
const PROTOCOL_VERSION: u8 = 70;
/// The alert about an error of the server.
pub const INTERNAL_ERROR: u8 = 80;
/// RFC 7507.
const INAPPROPRIATE_FALLBACK: u8 = 86;
/// The alert about a server name that is not served (RFC 6066 section 3).
pub const UNRECOGNIZED_NAME: u8 = 112;

/// Versions in records and hellos.
const SSL_3: u16 = 0x0300;
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;

/// The cipher suite that is none, but says that a client has fallen back (RFC 7507).
const FALLBACK: u16 = 0x5600;

/// The first byte of a record with a handshake message.
const RECORD_HANDSHAKE: u8 = 22;

/// Where the version is in a record that a ClientHello begins with.
const VERSION_AT: usize = 9;

/// A server name of which a message shows no more: DNS has none that are longer (RFC 1035 2.3.4).
const NAME_BYTES_MAX: usize = 255;

/// A TLS record with a fatal alert.
const fn fatal(alert: u8, version: u16) -> [u8; 7] {
    let [major, minor] = version.to_be_bytes();
    [21, major, minor, 0, 2, 2, alert]
}

/// A ClientHello, possibly incomplete.
pub struct Hello {
    acceptor: Acceptor,
    identify: Identify,
    /// The bytes of it that came before; the library takes them and does not show them again.
    earlier: Vec<u8>,
    /// The version that it begins with; `None`: too few bytes have come at first.
    version: Option<u16>,
}

/// Whether the offers that identify a client are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identify {
    Yes,
    /// Nothing asks for them, so handshakes do not pay for them.
    No,
}

/// A complete ClientHello.
pub struct Greeting {
    accepted: Accepted,
    /// The offers that identify the client; `None` if they could not be read, or nobody asked.
    offers: Option<ja4::Offers>,
    /// The version that it begins with.
    version: Option<u16>,
    /// Whether the client says that it offers an older version than it can, since another try has
    /// failed (RFC 7507).
    is_fallback: bool,
    /// The bytes after it.
    rest: Vec<u8>,
}

/// Why the bytes are not a ClientHello.
pub struct HelloError {
    reason: Reason,
    alert: Option<Refusal>,
}

enum Reason {
    Library(rustls::Error),
    /// The library refused this server name.
    Name(Box<[u8]>),
}

/// The alert about a refused ClientHello.
enum Refusal {
    Library(AcceptedAlert),
    /// The alert, and the version of its record.
    Own(u8, u16),
}

impl Hello {
    /// A ClientHello of which nothing has come.
    pub fn new(identify: Identify) -> Hello {
        Hello {
            acceptor: Acceptor::default(),
            identify,
            earlier: Vec::new(),
            version: None,
        }
    }

    /// Takes received bytes. `Ok(None)`: more are needed.
    ///
    /// # Errors
    /// The bytes are not a ClientHello. [`Transport::refuse`] sends the alert.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<Greeting>, HelloError> {
        if self.earlier.is_empty() {
            self.version = version(bytes);
        }
        // The library takes a read of no bytes for the client's end.
        while !bytes.is_empty() {
            let before = bytes;
            let read = self.acceptor.read_tls(&mut bytes);
            if let Err(error) = read {
                return Err(HelloError::from(&error));
            }
            let taken = &before[..before.len() - bytes.len()];
            let accepted = self.acceptor.accept();
            let accepted = accepted.map_err(|why| {
                HelloError::of(why, self.version).with_name_of(&self.whole(taken))
            })?;
            if let Some(accepted) = accepted {
                let whole = self.whole(taken);
                let offers = match self.identify {
                    Identify::Yes => ja4::Offers::read(&whole),
                    Identify::No => None,
                };
                return Ok(Some(Greeting {
                    offers,
                    version: self.version,
                    is_fallback: is_fallback(&accepted.client_hello(), &whole),
                    accepted,
                    rest: bytes.to_vec(),
                }));
            }
            self.earlier.extend_from_slice(taken);
        }
        Ok(None)
    }

    /// All its bytes, of which `last` are the last part.
    fn whole<'a>(&self, last: &'a [u8]) -> Cow<'a, [u8]> {
        if self.earlier.is_empty() {
            Cow::Borrowed(last)
        } else {
            Cow::Owned([&self.earlier, last].concat())
        }
    }
}

/// The version in a ClientHello that the bytes begin with.
fn version(bytes: &[u8]) -> Option<u16> {
    if bytes.first() != Some(&RECORD_HANDSHAKE) {
        return None;
    }
    let version = bytes.get(VERSION_AT..)?.first_chunk()?;
    Some(u16::from_be_bytes(*version))
}

fn is_fallback(hello: &ClientHello<'_>, bytes: &[u8]) -> bool {
    let mut suites = hello.cipher_suites().iter();
    let says_so = suites.any(|suite| u16::from(*suite) == FALLBACK);
    let offered = || client_hello::read(bytes).ok().flatten();
    says_so && offered().is_some_and(|offered| offered.version < TLS_1_3)
}

impl From<&io::Error> for HelloError {
    fn from(error: &io::Error) -> Self {
        Self {
            reason: Reason::Library(rustls::Error::General(error.to_string())),
            alert: None,
        }
    }
}

/// nginx's message, and for a server name, which the library refuses on its own, what is wrong.
impl fmt::Display for HelloError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SSL_do_handshake() failed (SSL: ")?;
        match &self.reason {
            Reason::Library(error) => write!(out, "{error})"),
            Reason::Name(name) => write!(
                out,
                "the client asked for the server name \"{}\", which DNS cannot have: it must send \
                 a host name without a port and brackets, or none)",
                name.escape_ascii()
            ),
        }
    }
}

impl HelloError {
    /// The number of the alert that tells the client; `None`: there is none.
    pub fn alert(self) -> Option<u8> {
        match self.alert? {
            Refusal::Own(alert, _) => Some(alert),
            Refusal::Library(mut alert) => {
                // A record whose last byte is the number.
                let mut record = Vec::new();
                alert.write_all(&mut record).ok()?;
                record.last().copied()
            }
        }
    }

    /// What the library says of a ClientHello that begins with this version.
    fn of((error, alert): (rustls::Error, AcceptedAlert), version: Option<u16>) -> Self {
        let own = own_alert(&error).map(|alert| Refusal::Own(alert, TLS_1_2));
        let own = too_old(&error, version).or(own);
        Self {
            reason: Reason::Library(error),
            alert: own.or(Some(Refusal::Library(alert))),
        }
    }

    /// Names the server name in this ClientHello, if that is what the library refused.
    fn with_name_of(mut self, hello: &[u8]) -> Self {
        let refused = PeerMisbehaved::ServerNameMustContainOneHostName;
        if matches!(&self.reason, Reason::Library(error) if *error == refused.into())
            && let Ok(Some(offered)) = client_hello::read(hello)
        {
            let name = offered.server_name.iter().copied();
            self.reason = Reason::Name(name.take(NAME_BYTES_MAX).collect());
        }
        self
    }
}

/// The refusal of a version before TLS 1.2, as OpenSSL has it: clients of these versions may not
/// read a record of a later one, and SSL 3 has no alert for it.
fn too_old(error: &rustls::Error, version: Option<u16>) -> Option<Refusal> {
    let version = version.filter(|version| *version < TLS_1_2)?;
    match error {
        // The library looks for these algorithms first, which old versions do not have.
        rustls::Error::PeerIncompatible(
            PeerIncompatible::SignatureAlgorithmsExtensionRequired
            | PeerIncompatible::Tls12NotOffered,
        ) => Some(match version {
            SSL_3 => Refusal::Own(HANDSHAKE_FAILURE, version),
            _ => Refusal::Own(PROTOCOL_VERSION, version),
        }),
        _ => None,
    }
}

/// The alert that RFC 8446 wants (sections 5.1 and 6.2), where the library has none, or the one for
/// a message that it cannot decode.
fn own_alert(error: &rustls::Error) -> Option<u8> {
    match error {
        rustls::Error::InvalidMessage(why) => match why {
            InvalidMessage::MessageTooLarge => Some(RECORD_OVERFLOW),
            InvalidMessage::InvalidContentType | InvalidMessage::InvalidEmptyPayload => {
                Some(UNEXPECTED_MESSAGE)
            }
            InvalidMessage::HandshakePayloadTooLarge => Some(DECODE_ERROR),
            _ => None,
        },
        rustls::Error::InappropriateMessage { .. }
        | rustls::Error::InappropriateHandshakeMessage { .. } => Some(UNEXPECTED_MESSAGE),
        _ => None,
    }
}

impl Greeting {
    /// The content of the ClientHello.
    pub fn hello(&self) -> ClientHello<'_> {
        self.accepted.client_hello()
    }

    /// The offers that the client is identified by; `None` if its hello is not well formed, or was
    /// not to be identified.
    pub fn offers(&self) -> Option<&ja4::Offers> {
        self.offers.as_ref()
    }
}

impl Transport {
    /// Begins the session that the client requested: the handshake comes next.
    ///
    /// `speaks_tls13` is whether the configuration has TLS 1.3: a client that could have had it,
    /// and offers an older version after a failure, may have been made to (RFC 7507).
    ///
    /// # Errors
    /// Client and server have nothing in common; the alert was sent.
    pub fn accept(
        &self,
        greeting: Greeting,
        config: Arc<ServerConfig>,
        speaks_tls13: bool,
    ) -> Result<(), rustls::Error> {
        if greeting.is_fallback && speaks_tls13 {
            let _ = Sink(self.as_fd()).write(&fatal(INAPPROPRIATE_FALLBACK, TLS_1_2));
            return Err(rustls::Error::General("inappropriate fallback".to_owned()));
        }
        let version = greeting.version;
        let connection = match greeting.accepted.into_connection(config) {
            Ok(connection) => connection,
            Err((error, alert)) => {
                self.refuse(HelloError::of((error.clone(), alert), version));
                return Err(error);
            }
        };
        let mut session = Session::new(rustls::Connection::Server(connection));
        let fed = session.feed(&greeting.rest);
        self.begin(session);
        fed.map_err(|error| rustls::Error::General(error.to_string()))
    }

    /// Sends a client the alert for a refused ClientHello, as far as the socket takes it: the
    /// connection is closed next.
    pub fn refuse(&self, why: HelloError) {
        let mut sink = Sink(self.as_fd());
        match why.alert {
            Some(Refusal::Library(mut alert)) => {
                let _ = alert.write_all(&mut sink);
            }
            Some(Refusal::Own(alert, version)) => {
                let _ = sink.write(&fatal(alert, version));
            }
            None => {}
        }
    }

    /// Sends a client the alert for an error of the server.
    pub fn refuse_for_error(&self) {
        let _ = Sink(self.as_fd()).write(&fatal(INTERNAL_ERROR, TLS_1_2));
    }

    /// Sends a client the alert for an unknown server name.
    pub fn refuse_name(&self) {
        let _ = Sink(self.as_fd()).write(&fatal(UNRECOGNIZED_NAME, TLS_1_2));
    }
}
