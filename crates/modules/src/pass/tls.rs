//! `proxy_ssl_*`: TLS to upstream servers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, View, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;
use turnpike_lane::log::Errno;
use turnpike_upstream::{TlsConnector, TlsError, TlsIdentity, TlsSettings, TlsVersions};

/// What begins TLS sessions, and for which name.
pub(crate) struct Tls {
    pub(crate) connector: Arc<TlsConnector>,
    /// `proxy_ssl_name`.
    name: Option<Template>,
}

/// Connectors made so far: locations that say the same share one, and so its sessions.
#[derive(Default)]
struct Connectors(HashMap<String, Arc<TlsConnector>>);

impl Tls {
    /// Reads the directives in force.
    ///
    /// # Errors
    /// What cannot be read, or what this TLS cannot do.
    pub(crate) fn read(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        if let Some(entry) = view.nearest("proxy_ssl_ciphers")
            && entry.argument(0) != "DEFAULT"
        {
            let message = "\"proxy_ssl_ciphers\" can only be \"DEFAULT\": the ciphers of rustls \
                           cannot be chosen by such a list";
            return Err(view.error(entry.span, message));
        }
        let verify = view.flag("proxy_ssl_verify");
        let trusted = file(view, builder, "proxy_ssl_trusted_certificate")?;
        if verify && trusted.is_none() {
            let message = "no proxy_ssl_trusted_certificate for proxy_ssl_verify";
            return Err(view.error(view.end(), message));
        }
        let settings = TlsSettings {
            verify,
            trusted: trusted.unwrap_or_default(),
            verify_depth: usize::try_from(view.number("proxy_ssl_verify_depth")).unwrap_or(0),
            revoked: file(view, builder, "proxy_ssl_crl")?.unwrap_or_default(),
            identity: identity(view, builder)?,
            server_name: view.flag("proxy_ssl_server_name"),
            session_reuse: view.flag("proxy_ssl_session_reuse"),
            versions: versions(view),
            protocols: Vec::new(),
        };
        let name = match view.nearest("proxy_ssl_name") {
            None => None,
            Some(entry) => Some(builder.template(view, entry, &bytes_of(entry.argument(0)))?),
        };
        let connector = connector(view, builder, &settings)?;
        Ok(Self { connector, name })
    }

    /// The name that the server must have: `proxy_ssl_name`, else the host of `proxy_pass`; without
    /// a port.
    pub(crate) fn name(&self, exchange: &Exchange) -> String {
        without_port(match &self.name {
            Some(template) => template.value(exchange),
            None => exchange.upstream.host.clone(),
        })
    }

    /// The same where no request is there: of `proxy_ssl_name` only what needs none.
    pub(crate) fn name_without_request(&self, host: &[u8]) -> String {
        let name = self.name.as_ref().and_then(Template::constant);
        without_port(name.unwrap_or(host).to_vec())
    }
}

fn without_port(name: Vec<u8>) -> String {
    let name = String::from_utf8_lossy(&name).into_owned();
    if let Some(rest) = name.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default().to_owned();
    }
    match name.split_once(':') {
        Some((host, _)) => host.to_owned(),
        None => name,
    }
}

fn connector(
    view: View<'_>,
    builder: &mut Builder<'_>,
    settings: &TlsSettings,
) -> Result<Arc<TlsConnector>, ConfError> {
    let key = format!("{settings:?}");
    if let Some(connector) = builder.store::<Connectors>().0.get(&key) {
        return Ok(Arc::clone(connector));
    }
    let connector = TlsConnector::new(settings).map_err(|error| {
        let directive = match &error {
            TlsError::Trusted(_) => "proxy_ssl_trusted_certificate",
            TlsError::Revoked(_) => "proxy_ssl_crl",
            TlsError::Certificate(_) => "proxy_ssl_certificate",
            TlsError::Key(_) => "proxy_ssl_certificate_key",
            TlsError::NoVersion => "proxy_ssl_protocols",
            TlsError::Library(_) => "proxy_pass",
        };
        let span = view
            .nearest(directive)
            .map_or(view.end(), |entry| entry.span);
        view.error(span, error.to_string())
    })?;
    let connector = Arc::new(connector);
    let connectors = builder.store::<Connectors>();
    connectors.0.insert(key, Arc::clone(&connector));
    Ok(connector)
}

fn identity(view: View<'_>, builder: &mut Builder<'_>) -> Result<Option<TlsIdentity>, ConfError> {
    let Some(certificate) = file(view, builder, "proxy_ssl_certificate")? else {
        return Ok(None);
    };
    let Some(key) = file(view, builder, "proxy_ssl_certificate_key")? else {
        let entry = view.nearest("proxy_ssl_certificate");
        let (span, text) = entry.map_or((view.end(), ""), |entry| (entry.span, entry.argument(0)));
        let message =
            format!("no \"proxy_ssl_certificate_key\" is defined for certificate \"{text}\"");
        return Err(view.error(span, message));
    };
    Ok(Some(TlsIdentity { certificate, key }))
}

/// The bytes of the file that a directive names; `None` where it is not given, or empty.
fn file(
    view: View<'_>,
    builder: &mut Builder<'_>,
    directive: &str,
) -> Result<Option<Vec<u8>>, ConfError> {
    let entry = view.nearest(directive);
    let Some(entry) = entry.filter(|entry| !entry.argument(0).is_empty()) else {
        return Ok(None);
    };
    let text = entry.argument(0);
    if text.contains('$') {
        let message = format!("\"{directive}\" with variables is not supported yet");
        return Err(view.error(entry.span, message));
    }
    let path = builder.environment.conf_folder().join(text);
    match builder.environment.file(&path) {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(error) => Err(unreadable(view, entry, &path, &error)),
    }
}

fn unreadable(view: View<'_>, entry: &Entry, path: &Path, error: &std::io::Error) -> ConfError {
    let what = match entry.row.name {
        "proxy_ssl_certificate_key" => "certificate key",
        _ => "certificate",
    };
    let (path, errno) = (path.display(), Errno(error));
    let message = format!("cannot load {what} \"{path}\": open() failed {errno}");
    view.error(entry.span, message)
}

/// Of the versions that may be named, those before 1.2 are not spoken.
fn versions(view: View<'_>) -> TlsVersions {
    let entries = view.nearest_all("proxy_ssl_protocols");
    if entries.is_empty() {
        return TlsVersions::default();
    }
    let has = |name: &str| {
        let mut words = entries.iter().flat_map(|entry| &entry.arguments);
        words.any(|word| word.text.eq_ignore_ascii_case(name))
    };
    TlsVersions {
        tls12: has("TLSv1.2"),
        tls13: has("TLSv1.3"),
    }
}
