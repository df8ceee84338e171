//! Certificates of clients: the requirement, and the received one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use turnpike_lane::sys::process::unix_s;
use turnpike_lane::trust::{Failure, Trust};
use turnpike_wire::certificate::Purpose;

use super::ServerIdentity;

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
    Bad(ClientFailure),
}

/// The fault of a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFailure {
    /// No chain leads from it to a trusted one, or one of the chain is bad.
    Chain(Failure),
    /// An OCSP responder does not say that the certificates of the chain are good.
    Status(StatusFailure),
}

/// What a responder says, or does not, of a chain that is good otherwise (RFC 6960).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFailure {
    /// No answer came that can be trusted.
    Unanswered,
    /// A certificate is revoked.
    Revoked,
    /// A certificate is not known to it.
    Unknown,
}

/// What asks OCSP responders for the states of clients' certificates.
pub trait StatusSource: Send + Sync {
    /// Begins to ask, for a chain that is good otherwise: a client's certificate, that of its
    /// issuer, and so on, in DER. The state of the last one is not asked for: nobody can revoke a
    /// trusted certificate. Called on a lane, so it must not block.
    fn ask(&self, chain: &[&[u8]]) -> Asking;
}

/// How far asking is.
pub enum Asking {
    /// What is known suffices.
    Done(Result<(), StatusFailure>),
    /// A responder has to answer.
    Later(Pin<Box<dyn Future<Output = Result<(), StatusFailure>>>>),
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
        let is_of_trust = matches!(failure, ClientFailure::Chain(failure) if failure.is_of_trust());
        let passes = self == VerifyClient::OptionalNoCa && is_of_trust;
        (!passes).then_some(ClientRefusal::Bad(failure))
    }
}

/// nginx's messages.
impl fmt::Display for ClientRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientRefusal::Missing => out.write_str("client sent no required SSL certificate"),
            ClientRefusal::Bad(ClientFailure::Chain(failure)) => {
                let number = failure.number();
                write!(
                    out,
                    "client SSL certificate verify error: ({number}:{failure})"
                )
            }
            ClientRefusal::Bad(ClientFailure::Status(failure)) => {
                write!(out, "client SSL certificate verify error: {failure}")
            }
        }
    }
}

/// OpenSSL's and nginx's words, for `$ssl_client_verify`.
impl fmt::Display for ClientFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientFailure::Chain(failure) => failure.fmt(out),
            ClientFailure::Status(failure) => failure.fmt(out),
        }
    }
}

/// nginx's words.
impl fmt::Display for StatusFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            StatusFailure::Unanswered => "certificate status request failed",
            StatusFailure::Revoked => "certificate revoked",
            StatusFailure::Unknown => "certificate status unknown",
        })
    }
}

/// A certificate that a client has sent. The client has proved that it has the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, DER.
    pub der: Box<[u8]>,
    /// The fault; `None` if it is valid.
    pub failure: Option<ClientFailure>,
    /// The certificates that were sent behind it, DER.
    others: Vec<Box<[u8]>>,
    /// What it was judged by.
    trust: Arc<Trust>,
    /// Whether responders were asked too.
    was_asked: bool,
}

impl ClientCertificate {
    /// Verifies the certificates of a client: its own, followed by others; `None` if there are
    /// none. For a good chain, `statuses` is asked whether its certificates are revoked.
    pub(super) fn check(
        shown: &[CertificateDer<'_>],
        trust: &Arc<Trust>,
        statuses: Option<&dyn StatusSource>,
    ) -> Option<(ClientCertificate, Asking)> {
        let (own, others) = shown.split_first()?;
        let (failure, asking) = match trust.chain(shown, Purpose::Client, unix_s()) {
            Err(failures) => (Some(ClientFailure::Chain(failures.last)), None),
            Ok(chain) => (None, statuses.map(|statuses| statuses.ask(&chain))),
        };
        let asking = asking.unwrap_or(Asking::Done(Ok(())));
        let others = others.iter().map(|der| der.as_ref().into());
        let client = ClientCertificate {
            der: own.as_ref().into(),
            failure,
            others: others.collect(),
            trust: Arc::clone(trust),
            was_asked: statuses.is_some(),
        };
        Some((client, asking))
    }

    /// The same certificate as another server judges it; `None`: it trusts the same, and asks no
    /// responders unless that was done. One that has to be asked first counts as one that does not
    /// answer.
    pub(super) fn judged_by(&self, identity: &ServerIdentity) -> Option<ClientCertificate> {
        let trust = identity.clients.as_ref()?;
        let is_same = Arc::ptr_eq(trust, &self.trust) || *trust == self.trust;
        if is_same && (self.was_asked || identity.statuses.is_none()) {
            return None;
        }
        let sent = [&self.der].into_iter().chain(&self.others);
        let shown: Vec<CertificateDer<'_>> = sent.map(|der| CertificateDer::from(&**der)).collect();
        let (mut client, asking) = Self::check(&shown, trust, identity.statuses.as_deref())?;
        let status = match asking {
            Asking::Done(status) => status,
            Asking::Later(_) => Err(StatusFailure::Unanswered),
        };
        if let (None, Err(failure)) = (client.failure, status) {
            client.failure = Some(ClientFailure::Status(failure));
        }
        Some(client)
    }
}
