//! The start of a TLS session: the ClientHello names the server, which determines the certificate.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustls::server::{Accepted, AcceptedAlert, Acceptor, ClientHello};
use rustls::{InvalidMessage, ServerConfig};
use turnpike_wire::client_hello::ja4;

use super::Transport;
use super::session::{Session, Sink};

/// Alerts (RFC 8446 section 6, RFC 6066 section 3).
const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const DECODE_ERROR: u8 = 50;
const INTERNAL_ERROR: u8 = 80;
const UNRECOGNIZED_NAME: u8 = 112;

/// A TLS record with a fatal alert.
const fn fatal(alert: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, alert]
}

/// A ClientHello, possibly incomplete.
pub struct Hello {
    acceptor: Acceptor,
    identify: Identify,
    /// The bytes of it that came before; the library takes them and does not show them again.
    /// Empty if the client is not to be identified.
    earlier: Vec<u8>,
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
    /// The bytes after it.
    rest: Vec<u8>,
}

/// Why the bytes are not a ClientHello.
pub struct HelloError {
    pub error: rustls::Error,
    alert: Option<Refusal>,
}

/// The alert about a refused ClientHello.
enum Refusal {
    Library(AcceptedAlert),
    Own(u8),
}

impl Hello {
    /// A ClientHello of which nothing has come.
    pub fn new(identify: Identify) -> Hello {
        Hello {
            acceptor: Acceptor::default(),
            identify,
            earlier: Vec::new(),
        }
    }

    /// Takes received bytes. `Ok(None)`: more are needed.
    ///
    /// # Errors
    /// The bytes are not a ClientHello. [`Transport::refuse`] sends the alert.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<Greeting>, HelloError> {
        // The library takes a read of no bytes for the client's end.
        while !bytes.is_empty() {
            let before = bytes;
            let read = self.acceptor.read_tls(&mut bytes);
            if let Err(error) = read {
                return Err(HelloError::from(&error));
            }
            let accepted = self.acceptor.accept();
            let accepted = accepted.map_err(HelloError::from)?;
            let taken = &before[..before.len() - bytes.len()];
            if let Some(accepted) = accepted {
                return Ok(Some(Greeting {
                    accepted,
                    offers: self.offers(taken),
                    rest: bytes.to_vec(),
                }));
            }
            if self.identify == Identify::Yes {
                self.earlier.extend_from_slice(taken);
            }
        }
        Ok(None)
    }

    /// Reads the offers, of which `last` is the last part.
    fn offers(&mut self, last: &[u8]) -> Option<ja4::Offers> {
        if self.identify == Identify::No {
            return None;
        }
        if self.earlier.is_empty() {
            return ja4::Offers::read(last);
        }
        self.earlier.extend_from_slice(last);
        ja4::Offers::read(&self.earlier)
    }
}

impl From<&io::Error> for HelloError {
    fn from(error: &io::Error) -> Self {
        Self {
            error: rustls::Error::General(error.to_string()),
            alert: None,
        }
    }
}

impl From<(rustls::Error, AcceptedAlert)> for HelloError {
    fn from((error, alert): (rustls::Error, AcceptedAlert)) -> Self {
        let own = own_alert(&error).map(Refusal::Own);
        Self {
            error,
            alert: own.or(Some(Refusal::Library(alert))),
        }
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
    /// # Errors
    /// Client and server have nothing in common; the alert was sent.
    pub fn accept(
        &self,
        greeting: Greeting,
        config: Arc<ServerConfig>,
    ) -> Result<(), rustls::Error> {
        let connection = match greeting.accepted.into_connection(config) {
            Ok(connection) => connection,
            Err(why) => {
                let why = HelloError::from(why);
                let error = why.error.clone();
                self.refuse(why);
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
            Some(Refusal::Own(alert)) => {
                let _ = sink.write(&fatal(alert));
            }
            None => {}
        }
    }

    /// Sends a client the alert for an error of the server.
    pub fn refuse_for_error(&self) {
        let _ = Sink(self.as_fd()).write(&fatal(INTERNAL_ERROR));
    }

    /// Sends a client the alert for an unknown server name.
    pub fn refuse_name(&self) {
        let _ = Sink(self.as_fd()).write(&fatal(UNRECOGNIZED_NAME));
    }
}
