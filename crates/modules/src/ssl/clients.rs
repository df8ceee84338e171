//! `ssl_verify_client`: certificates that clients show.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use turnpike_conf::{ConfError, Entry, View};
use turnpike_lane::trust::{Trust, verify_tls12, verify_tls13};
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::VerifyClient;
use turnpike_wire::certificate::Certificate;

use super::files;

/// What is said of clients' certificates.
pub(super) struct Clients {
    /// CAs whose certificates are good.
    pub(super) trust: Trust,
    /// Names of CAs that are sent to clients.
    hints: Vec<DistinguishedName>,
}

/// Takes any certificate whose key the client has. Whether it is good is found out when the
/// handshake is done, since a request is answered with 495 then.
#[derive(Debug)]
pub(super) struct Verifier {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The mode in force.
pub(super) fn mode(view: View<'_>) -> VerifyClient {
    match view.choice("ssl_verify_client") {
        "on" => VerifyClient::On,
        "optional" => VerifyClient::Optional,
        "optional_no_ca" => VerifyClient::OptionalNoCa,
        _ => VerifyClient::Off,
    }
}

impl Clients {
    /// Reads the directives in force. `None`: clients are not asked for a certificate.
    ///
    /// # Errors
    /// What is missing or cannot be read.
    pub(super) fn read<S>(
        view: View<'_>,
        builder: &mut Builder<'_, S>,
    ) -> Result<Option<Clients>, ConfError> {
        let mode = mode(view);
        if mode == VerifyClient::Off {
            return Ok(None);
        }
        let named = |name: &str| {
            let entry = view.nearest(name);
            entry.filter(|entry| !entry.argument(0).is_empty())
        };
        let told = named("ssl_client_certificate");
        let trusted = named("ssl_trusted_certificate");
        if mode != VerifyClient::OptionalNoCa && told.is_none() && trusted.is_none() {
            let message = "no ssl_client_certificate or ssl_trusted_certificate for \
                           ssl_verify_client";
            let place = view.nearest("ssl_verify_client");
            let span = place.map_or(view.end(), |entry| entry.span);
            return Err(view.error(span, message));
        }
        let depth = usize::try_from(view.number("ssl_verify_depth")).unwrap_or(0);
        let mut trust = Trust::none(depth);
        add(view, builder, told, &mut trust)?;
        let hints = hints(&trust);
        add(view, builder, trusted, &mut trust)?;
        if let Some(entry) = named("ssl_crl") {
            let failed = |name: &str, why: &str| {
                let message = format!("X509_LOOKUP_load_file(\"{name}\") failed {why}");
                view.error(entry.span, message)
            };
            let (name, pem) = files::read(builder, entry);
            let pem = pem.map_err(|why| failed(&name, &why.to_string()))?;
            let revoked = trust.revoke(&pem);
            revoked.map_err(|why| failed(&name, &format!("(SSL: {why})")))?;
        }
        Ok(Some(Clients { trust, hints }))
    }

    /// What asks clients for certificates.
    pub(super) fn verifier(&self) -> Verifier {
        Verifier {
            hints: self.hints.clone(),
            algorithms: default_provider().signature_verification_algorithms,
        }
    }
}

fn add<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    entry: Option<&Entry>,
    trust: &mut Trust,
) -> Result<(), ConfError> {
    let Some(entry) = entry else {
        return Ok(());
    };
    let (name, pem) = files::read(builder, entry);
    let failed = |why: &str| {
        let message = format!("SSL_CTX_load_verify_locations(\"{name}\") failed {why}");
        view.error(entry.span, message)
    };
    let pem = pem.map_err(|why| failed(&why.to_string()))?;
    let added = trust.add(&pem);
    added.map_err(|why| failed(&format!("(SSL: {why})")))
}

/// Names of the CAs that are trusted, each of them once.
fn hints(trust: &Trust) -> Vec<DistinguishedName> {
    let mut hints = Vec::new();
    for anchor in trust.anchors() {
        if let Some(read) = Certificate::read(anchor) {
            let name = DistinguishedName::in_sequence(read.subject.as_bytes());
            let is_it = |hint: &DistinguishedName| hint.as_ref() == name.as_ref();
            if !hints.iter().any(is_it) {
                hints.push(name);
            }
        }
    }
    hints
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
