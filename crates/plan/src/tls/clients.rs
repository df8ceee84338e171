//! Certificates of clients: whether one has to be shown, and what has been.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use turnpike_lane::trust::{Failure, Trust};
use turnpike_wire::certificate::Purpose;

/// Whether clients have to show a certificate (`ssl_verify_client`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyClient {
    /// None is asked for.
    #[default]
    Off,
    /// A good one has to be shown.
    On,
    /// One that is shown has to be good.
    Optional,
    /// One that is shown may be of an unknown CA.
    OptionalNoCa,
}

/// Why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRefusal {
    /// No certificate was shown.
    Missing,
    /// The certificate that it has shown is not good.
    Bad(Failure),
}

impl VerifyClient {
    /// Why a client that has shown this is refused; `None`: it is not.
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

/// In nginx's words.
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

/// A certificate that a client has shown. It has proved that it has the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, DER.
    pub der: Box<[u8]>,
    /// What is wrong with it; `None`: it is good.
    pub failure: Option<Failure>,
}

impl ClientCertificate {
    /// Checks what a client has shown: its certificate, followed by others; `None`: nothing.
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
