//! `..._ssl_*`: TLS to upstream servers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;
use turnpike_lane::log::Errno;
use turnpike_upstream::{TlsConnector, TlsError, TlsIdentity, TlsSettings, TlsVersions};

use super::view::PassView;

/// What begins TLS sessions, and for which name.
pub(crate) struct Tls {
    pub(crate) connector: Arc<TlsConnector>,
    /// `..._ssl_name`.
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
    pub(crate) fn read(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let view = pass.view;
        if let Some(entry) = pass.nearest("ssl_ciphers")
            && entry.argument(0) != "DEFAULT"
        {
            let message = format!(
                "\"{}\" can only be \"DEFAULT\": the ciphers of rustls cannot be chosen by such a \
                 list",
                entry.row.name
            );
            return Err(view.error(entry.span, message));
        }
        let verify = pass.flag("ssl_verify");
        let trusted = file(pass, builder, "ssl_trusted_certificate")?;
        if verify && trusted.is_none() {
            let prefix = pass.prefix;
            let message = format!("no {prefix}_ssl_trusted_certificate for {prefix}_ssl_verify");
            return Err(view.error(view.end(), message));
        }
        let settings = TlsSettings {
            verify,
            trusted: trusted.unwrap_or_default(),
            verify_depth: usize::try_from(pass.number("ssl_verify_depth")).unwrap_or(0),
            revoked: file(pass, builder, "ssl_crl")?.unwrap_or_default(),
            identity: identity(pass, builder)?,
            server_name: pass.flag("ssl_server_name"),
            session_reuse: pass.flag("ssl_session_reuse"),
            versions: versions(pass),
            protocols: Vec::new(),
        };
        let name = pass.template("ssl_name", builder)?;
        let connector = connector(pass, builder, &settings)?;
        Ok(Self { connector, name })
    }

    /// The name that the server must have: `..._ssl_name`, else the host of `..._pass`; without
    /// a port.
    pub(crate) fn name(&self, exchange: &Exchange) -> String {
        without_port(match &self.name {
            Some(template) => template.value(exchange),
            None => exchange.upstream.host.clone(),
        })
    }

    /// The same where no request is there: of `..._ssl_name` only what needs none.
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
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
    settings: &TlsSettings,
) -> Result<Arc<TlsConnector>, ConfError> {
    let key = format!("{settings:?}");
    if let Some(connector) = builder.store::<Connectors>().0.get(&key) {
        return Ok(Arc::clone(connector));
    }
    let connector = TlsConnector::new(settings).map_err(|error| {
        let directive = match &error {
            TlsError::Trusted(_) => "ssl_trusted_certificate",
            TlsError::Revoked(_) => "ssl_crl",
            TlsError::Certificate(_) => "ssl_certificate",
            TlsError::Key(_) => "ssl_certificate_key",
            TlsError::NoVersion => "ssl_protocols",
            TlsError::Library(_) => "pass",
        };
        let entry = pass.nearest(directive);
        let span = entry.map_or(pass.view.end(), |entry| entry.span);
        pass.view.error(span, error.to_string())
    })?;
    let connector = Arc::new(connector);
    let connectors = builder.store::<Connectors>();
    connectors.0.insert(key, Arc::clone(&connector));
    Ok(connector)
}

fn identity(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
) -> Result<Option<TlsIdentity>, ConfError> {
    let Some(certificate) = file(pass, builder, "ssl_certificate")? else {
        return Ok(None);
    };
    let Some(key) = file(pass, builder, "ssl_certificate_key")? else {
        let (view, entry) = (pass.view, pass.nearest("ssl_certificate"));
        let (span, text) = entry.map_or((view.end(), ""), |entry| (entry.span, entry.argument(0)));
        let name = pass.name("ssl_certificate_key");
        let message = format!("no \"{name}\" is defined for certificate \"{text}\"");
        return Err(view.error(span, message));
    };
    Ok(Some(TlsIdentity { certificate, key }))
}

/// The bytes of the file that the directive with this end of its name names; `None` where it is not
/// given, or empty.
fn file(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
    end: &str,
) -> Result<Option<Vec<u8>>, ConfError> {
    let (view, entry) = (pass.view, pass.nearest(end));
    let Some(entry) = entry.filter(|entry| !entry.argument(0).is_empty()) else {
        return Ok(None);
    };
    let text = entry.argument(0);
    if text.contains('$') {
        let message = format!("\"{}\" with variables is not supported yet", entry.row.name);
        return Err(view.error(entry.span, message));
    }
    let path = builder.environment.conf_folder().join(text);
    match builder.environment.file(&path) {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(error) => Err(unreadable(view, entry, &path, &error)),
    }
}

fn unreadable(view: View<'_>, entry: &Entry, path: &Path, error: &std::io::Error) -> ConfError {
    let what = match entry.row.name.ends_with("_key") {
        true => "certificate key",
        false => "certificate",
    };
    let (path, errno) = (path.display(), Errno(error));
    let message = format!("cannot load {what} \"{path}\": open() failed {errno}");
    view.error(entry.span, message)
}

/// Of the versions that may be named, those before 1.2 are not spoken.
fn versions(pass: PassView<'_>) -> TlsVersions {
    let entries = pass.nearest_all("ssl_protocols");
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
