//! Certificates of clients: the requirement, and the received one.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use turnpike_lane::trust::{Failure, Trust};
use turnpike_wire::certificate::Purpose;

/// Whether clients must send a certificate (`ssl_verify_client`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyClient {
    /// No certificate is requested.
    #[default]
    Off,
    /// A valid one is required.
    On,
    /// One that is sent must be valid.
    Optional,
    /// One that is sent may be from an unknown CA.
    OptionalNoCa,
}

/// Why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRefusal {
    /// No certificate was sent.
    Missing,
    /// The certificate is invalid.
    Bad(Failure),
}

impl VerifyClient {
    /// Why a client with this certificate is refused; `None` if it is not.
    pub fn refusal(self, shown: Option<&ClientCertificate>) -> Option<ClientRefusal> {
        if self == VerifyClient::Off {
            return None;
        }
        let Some(client) = shown else {
            return (self == VerifyClient::On).then_some(ClientRefusal::Missing);
        };
        let failure = client.failure?;
        let passes = self == VerifyClient::OptionalNoCa && failure.is_of_trust();
        (!passes).then_some(ClientRefusal::Bad(failure))
    }
}

/// nginx's messages.
impl fmt::Display for ClientRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientRefusal::Missing => out.write_str("client sent no required SSL certificate"),
            ClientRefusal::Bad(failure) => {
                let number = failure.number();
                write!(
                    out,
                    "client SSL certificate verify error: ({number}:{failure})"
                )
            }
        }
    }
}

/// A certificate that a client has sent. The client has proved that it has the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, DER.
    pub der: Box<[u8]>,
    /// The fault; `None` if it is valid.
    pub failure: Option<Failure>,
}

impl ClientCertificate {
    /// Verifies the certificates of a client: its own, followed by others; `None` if there are
    /// none.
    pub(super) fn check(shown: &[CertificateDer<'_>], trust: &Trust) -> Option<ClientCertificate> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = since.map_or(0, |since| since.as_secs());
        let verified = trust.verify(shown, Purpose::Client, now_s);
        Some(ClientCertificate {
            der: shown.first()?.as_ref().into(),
            failure: verified.err().map(|failures| failures.last),
        })
    }
}
