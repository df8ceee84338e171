//! Sessions with peers, and the reasons of refusals on either side.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConnection, Connection};

use super::TlsConnector;
use super::verify::Untrusted;

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The peer's certificate is invalid.
    Certificate(String),
    /// The certificate is valid, but for another name.
    Name,
    /// The handshake failed.
    Protocol(String),
}

impl TlsConnector {
    /// Begins a session with the peer of that name. `protocols` replace those of the settings, if
    /// there are any.
    pub(crate) fn session(&self, name: &str, protocols: &[Vec<u8>]) -> Result<Connection, Refusal> {
        let server = match ServerName::try_from(name.to_owned()) {
            Ok(name) => name,
            Err(_) if self.verify => return Err(Refusal::Name),
            // The name is not verified, and as an address it is not sent.
            Err(_) => ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        };
        let protocols = match protocols {
            [] => self.config.alpn_protocols.clone(),
            given => given.to_vec(),
        };
        ClientConnection::new_with_alpn(Arc::clone(&self.config), server, protocols)
            .map(Connection::Client)
            .map_err(|error| Refusal::Protocol(error.to_string()))
    }
}

impl Refusal {
    /// The reason in a handshake error.
    pub(crate) fn of(error: &rustls::Error) -> Refusal {
        match error {
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Refusal::Name,
            rustls::Error::InvalidCertificate(why) => Refusal::Certificate(verify_error(why)),
            other => Refusal::Protocol(other.to_string()),
        }
    }
}

/// OpenSSL's number and message, since users search logs for them.
fn verify_error(why: &CertificateError) -> String {
    match why {
        CertificateError::Other(why) if why.0.is::<Untrusted>() => why.0.to_string(),
        CertificateError::BadSignature => "7:certificate signature failure".to_owned(),
        other => format!("1:{other}"),
    }
}
