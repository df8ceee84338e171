//! `ssl_verify_client`: certificates that clients show.

use std::fmt;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use turnpike_conf::{ConfError, Entry, View};
use turnpike_lane::trust::{Trust, TrustError, verify_tls12, verify_tls13};
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

/// OpenSSL's words where a file has revocation lists alone.
const NO_CA: &str = "(SSL: error:0480006C:PEM routines::no start line:Expecting: CERTIFICATE)";

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
            // nginx reads these files all the same.
            let mut unused = trusted(view, builder)?;
            lists(view, builder, |pem| unused.add(pem))?;
            return Ok(None);
        }
        let told = named(view, "ssl_client_certificate");
        let trusted = named(view, "ssl_trusted_certificate");
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
        if let Some(entry) = told.filter(|_| trust.anchors().is_empty()) {
            let name = files::path(builder, entry);
            let message = format!(
                "SSL_load_client_CA_file(\"{}\") failed {NO_CA}",
                name.display()
            );
            return Err(view.error(entry.span, message));
        }
        let hints = hints(&trust);
        add(view, builder, trusted, &mut trust)?;
        lists(view, builder, |pem| trust.revoke(pem))?;
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

/// The directive that names a file; as in nginx, an empty name is none.
fn named<'a>(view: View<'a>, name: &str) -> Option<&'a Entry> {
    let entry = view.nearest(name);
    entry.filter(|entry| !entry.argument(0).is_empty())
}

/// The certificates of `ssl_trusted_certificate`.
///
/// # Errors
/// The file cannot be read.
pub(super) fn trusted<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<Trust, ConfError> {
    let mut trust = Trust::none(0);
    let entry = named(view, "ssl_trusted_certificate");
    add(view, builder, entry, &mut trust)?;
    Ok(trust)
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
    let failed = |why: &dyn fmt::Display| {
        let message = format!("SSL_CTX_load_verify_locations(\"{name}\") failed {why}");
        view.error(entry.span, message)
    };
    let pem = pem.map_err(|why| failed(&why))?;
    trust.add(&pem).map_err(|why| failed(&why))
}

/// Takes the lists of `ssl_crl`.
///
/// # Errors
/// The file cannot be read.
fn lists<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    take: impl FnOnce(&[u8]) -> Result<(), TrustError>,
) -> Result<(), ConfError> {
    let Some(entry) = named(view, "ssl_crl") else {
        return Ok(());
    };
    let (name, pem) = files::read(builder, entry);
    let failed = |why: &dyn fmt::Display| {
        let message = format!("X509_LOOKUP_load_file(\"{name}\") failed {why}");
        view.error(entry.span, message)
    };
    let pem = pem.map_err(|why| failed(&why))?;
    take(&pem).map_err(|why| failed(&why))
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
