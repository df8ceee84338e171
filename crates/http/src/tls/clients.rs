//! Certificates of clients: what one has shown, and what that means for its requests.

use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use turnpike_lane::log::Level;
use turnpike_lane::trust::{Failure, Trust};
use turnpike_wire::certificate::Purpose;

use crate::exchange::Exchange;

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

impl Exchange {
    /// The status by which the request's server refuses the client for its certificate, or for the
    /// lack of one; `None`: it does not.
    pub(crate) fn client_refusal(&self) -> Option<u16> {
        let session = self.tls.as_deref()?;
        let plan = self.plan.clone();
        let verify = plan.location(self.server().root).verify_client;
        if verify == VerifyClient::Off {
            return None;
        }
        let refuse = |status: u16, why: std::fmt::Arguments<'_>| {
            self.log(Level::Info, why);
            Some(status)
        };
        // The handshake was another server's: what the client has shown, it has shown to that one.
        if !session.server_name.is_empty() && *session.server_name != *self.host {
            return refuse(
                421,
                format_args!(
                    "client attempted to request the server name different from the one that was \
                     negotiated"
                ),
            );
        }
        let Some(client) = &session.client else {
            return match verify {
                VerifyClient::On => {
                    refuse(496, format_args!("client sent no required SSL certificate"))
                }
                _ => None,
            };
        };
        let failure = client.failure?;
        if verify == VerifyClient::OptionalNoCa && failure.is_of_trust() {
            return None;
        }
        let number = failure.number();
        refuse(
            495,
            format_args!("client SSL certificate verify error: ({number}:{failure})"),
        )
    }
}
