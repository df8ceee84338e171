//! Certificates of clients: whether one has to be shown, and what has been.

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
