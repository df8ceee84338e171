//! Certificates with their keys, and the choice between them.

use std::sync::Arc;

use rustls::sign::CertifiedKey;
use turnpike_conf::{ConfError, Entry, View, bytes_of};
use turnpike_lane::sys::process::unix_s;
use turnpike_lane::trust;
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::{CertificateSource, CertificatesByName};

use super::commands::Commands;
use super::source::Source;
use super::{chain, files, private_key};
use crate::common::certificate_expiry::{self, FromFile};
use crate::common::issued_certificate::IssuedSource;

/// What a text begins with that stands in the configuration itself, in place of a file's name.
pub(super) const DATA: &str = "data:";

/// The beginnings of names that stand for something else than a file, which is not supported.
pub(super) const NO_FILES: [&str; 2] = ["engine:", "store:"];

/// The certificates of a server.
pub(super) enum Identities {
    /// Read with the configuration.
    Read(Vec<Arc<CertifiedKey>>),
    /// Named by variables.
    ByName(CertificatesByName),
}

/// How the certificate that an issuer gave is named, and its key.
const ISSUED: &str = "$acme_certificate";
const ISSUED_KEY: &str = "$acme_certificate_key";

impl Identities {
    /// Reads the certificates in force, each with its key. `None`: there is none.
    ///
    /// # Errors
    /// What is missing, unreadable, or does not belong together, in nginx's words.
    pub(super) fn read<S>(
        view: View<'_>,
        builder: &mut Builder<'_, S>,
        commands: &Commands<'_>,
    ) -> Result<Option<Identities>, ConfError> {
        let certificates = view.nearest_all("ssl_certificate");
        let keys = view.nearest_all("ssl_certificate_key");
        let passwords = match view.nearest("ssl_password_file") {
            Some(entry) => files::passwords(view, builder, entry)?,
            None => Vec::new(),
        };
        let mut pairs = Vec::new();
        for (at, certificate) in certificates.iter().enumerate() {
            let Some(key) = keys.get(at) else {
                let name = certificate.argument(0);
                let message =
                    format!("no \"ssl_certificate_key\" is defined for certificate \"{name}\"");
                return Err(view.error(certificate.span, message));
            };
            pairs.push([*certificate, *key]);
        }
        if !pairs.is_empty() {
            pairs.extend(commands.pair(view)?);
        }
        if pairs.iter().any(|pair| has_variables(*pair)) {
            let cache = view.nearest("ssl_certificate_cache");
            let named = by_name(view, builder, &pairs, passwords, cache)?;
            return Ok(Some(Identities::ByName(named)));
        }
        let mut read: Vec<CertifiedKey> = Vec::new();
        for pair in pairs {
            let one = certified(view, builder, pair, &passwords)?;
            let kind = one.key.algorithm();
            // As in OpenSSL, one of the same kind replaces what came before.
            match read.iter_mut().find(|other| other.key.algorithm() == kind) {
                Some(other) => *other = one,
                None => read.push(one),
            }
        }
        if read.is_empty() {
            return issued(view, builder);
        }
        if let Some(response) = stapled(view, builder)?
            && let Some(first) = read.first_mut()
        {
            first.ocsp = Some(response);
        }
        let keys = read.into_iter().map(Arc::new).collect();
        Ok(Some(Identities::Read(keys)))
    }

    /// What sets these certificates apart from others, for sessions that are resumed: their names,
    /// where they have variables in them.
    pub(super) fn ends(&self) -> Vec<&[u8]> {
        match self {
            Identities::Read(keys) => {
                let ends = keys.iter().filter_map(|key| key.cert.first());
                ends.map(|certificate| certificate.as_ref()).collect()
            }
            Identities::ByName(named) => {
                let names = named.templates.iter();
                names.map(|[certificate, _]| certificate.text()).collect()
            }
        }
    }
}

/// The certificate that an issuer gives a server which names none. `None`: no issuer does.
fn issued<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Option<Identities>, ConfError> {
    let source = builder.store::<IssuedSource>().source.clone();
    let (Some(source), Some(listen)) = (source, view.own_all("listen").next()) else {
        return Ok(None);
    };
    let mut template = |name: &str| builder.template(view, listen, name.as_bytes());
    let pair = [template(ISSUED)?, template(ISSUED_KEY)?];
    Ok(Some(Identities::ByName(CertificatesByName {
        templates: vec![pair],
        source,
    })))
}

/// Whether what one of these directives names has variables in it.
pub(crate) fn has_variables(entries: [&Entry; 2]) -> bool {
    entries
        .iter()
        .any(|entry| files::name_of(entry).contains('$'))
}

/// The certificates that directives name by variables, each with the key that another one names.
///
/// # Errors
/// nginx's words for what the directives say.
pub(super) fn by_name<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    pairs: &[[&Entry; 2]],
    passwords: Vec<Vec<u8>>,
    cache: Option<&Entry>,
) -> Result<CertificatesByName, ConfError> {
    let mut templates = Vec::new();
    for [certificate, key] in pairs {
        let mut template = |entry: &Entry| {
            let text = bytes_of(files::name_of(entry));
            builder.template(view, entry, &text)
        };
        templates.push([template(certificate)?, template(key)?]);
    }
    let source: Arc<dyn CertificateSource> = match pairs {
        [pair] if is_of_acme(*pair) => match builder.store::<IssuedSource>().source.clone() {
            Some(source) => source,
            None => {
                let message = "\"$acme_certificate\" needs \"acme_certificate\" in the server";
                return Err(view.error(pair[0].span, message));
            }
        },
        _ => {
            let folder = builder.environment.conf_folder();
            Arc::new(Source::new(view, folder, passwords, cache)?)
        }
    };
    Ok(CertificatesByName { templates, source })
}

/// Whether directives name the certificate that an ACME issuer gave, and its key: it is in memory,
/// and nothing is read for it.
fn is_of_acme([certificate, key]: [&Entry; 2]) -> bool {
    let (certificate, key) = (files::name_of(certificate), files::name_of(key));
    certificate == ISSUED && key == ISSUED_KEY
}

/// The certificate that a directive names, with the key that another one names.
///
/// # Errors
/// What is unreadable or does not belong together, in nginx's words. What clients may refuse is a
/// warning.
pub(super) fn certified<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    [certificate, key]: [&Entry; 2],
    passwords: &[Vec<u8>],
) -> Result<CertifiedKey, ConfError> {
    let (name, pem) = file(view, builder, certificate, "certificate")?;
    let certificates = trust::chain(&pem).map_err(|why| {
        let message = format!("cannot load certificate \"{name}\": {why}");
        view.error(certificate.span, message)
    })?;
    let (key_name, pem) = file(view, builder, key, "certificate key")?;
    let unreadable = |why: &str| {
        let message = format!(
            "cannot load certificate key \"{key_name}\": PEM_read_bio_PrivateKey() failed \
             (SSL: {why})"
        );
        view.error(key.span, message)
    };
    let signer = private_key::read(&pem, passwords).map_err(|why| unreadable(&why))?;
    let identity = CertifiedKey::new(certificates, signer);
    if !is_its_key(&identity) {
        let message =
            format!("SSL_CTX_use_PrivateKey(\"{key_name}\") failed (SSL: key values mismatch)");
        return Err(view.error(key.span, message));
    }
    let ders = identity.cert.iter().map(AsRef::as_ref);
    // A text in the configuration itself is named by its first line.
    let name = name.lines().next().unwrap_or_default();
    for oddity in chain::oddities(name, ders, unix_s()) {
        builder.warn(view, certificate, oddity);
    }
    let end = identity.cert.first();
    if let Some(file) = end.and_then(|end| FromFile::read(name, end)) {
        let log = builder.error_log(view)?;
        certificate_expiry::watch(builder, &log, Arc::new(file));
    }
    Ok(identity)
}

/// Whether the key is the one that the certificate is about: its public part stands there. The
/// library's own comparison does not read certificates of version 1, which OpenSSL makes.
pub(super) fn is_its_key(identity: &CertifiedKey) -> bool {
    let public = identity.key.public_key();
    let certificate = identity.cert.first();
    public
        .zip(certificate)
        .is_some_and(|(public, certificate)| holds(certificate.as_ref(), public.as_ref()))
}

/// The OCSP response that is sent with the certificate.
fn stapled<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<Option<Vec<u8>>, ConfError> {
    if !view.flag("ssl_stapling") {
        return Ok(None);
    }
    match view.nearest("ssl_stapling_file") {
        Some(entry) => Ok(Some(file(view, builder, entry, "OCSP response")?.1)),
        None => Ok(None),
    }
}

/// The full path and the bytes of the file that a directive names, or the text that it gives.
fn file<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    entry: &Entry,
    what: &str,
) -> Result<(String, Vec<u8>), ConfError> {
    let text = files::name_of(entry);
    let directive = entry.row.name;
    if let Some(start) = NO_FILES.iter().find(|start| text.starts_with(**start)) {
        let message = format!("\"{start}\" in \"{directive}\" is not supported yet, name a file");
        return Err(view.error(entry.span, message));
    }
    if let Some(data) = text.strip_prefix(DATA) {
        return Ok((text.to_owned(), bytes_of(data)));
    }
    let (name, bytes) = files::read(builder, entry);
    match bytes {
        Ok(bytes) => Ok((name, bytes)),
        Err(why) => {
            let message = format!("cannot load {what} \"{name}\": BIO_new_file() failed {why}");
            Err(view.error(entry.span, message))
        }
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}
