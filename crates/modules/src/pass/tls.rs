//! `..._ssl_*`: TLS to upstream servers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::SupportedProtocolVersion;
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use turnpike_conf::{ConfError, Entry, View};
use turnpike_lane::log::{Errno, Level};
use turnpike_plan::builder::Builder;
use turnpike_plan::template::Template;
use turnpike_plan::tls::CertificatesByName;
use turnpike_plan::variables::Subject;
use turnpike_upstream::{TlsConnector, TlsError, TlsSettings};

use super::view::PassView;
use crate::ssl::{self, PeerDirectives};

/// What begins TLS sessions, and for which name.
pub(crate) struct Tls {
    connector: Arc<TlsConnector>,
    /// Our certificates, where variables name them.
    by_name: Option<ByName>,
    /// `..._ssl_name`.
    name: Option<Template>,
}

/// Connectors that are kept with a certificate that a variable has named, for the connections and
/// sessions that they have: as many as a proxy has tenants that are busy at a time.
const READY_MAX: usize = 64;

/// Certificates whose names have variables in them.
struct ByName {
    certificates: CertificatesByName,
    /// Whether certificates are kept (`..._ssl_certificate_cache`), so that a connector can be used
    /// again.
    keeps: bool,
    ready: Mutex<Vec<Ready>>,
}

/// A connector with the certificate that it shows.
struct Ready {
    identity: Arc<CertifiedKey>,
    connector: Arc<TlsConnector>,
}

impl Ready {
    /// Whether that is its certificate, with the very key that was read with it.
    fn shows(&self, identity: &CertifiedKey) -> bool {
        self.identity.cert == identity.cert
            && Arc::as_ptr(&self.identity.key).cast::<()>()
                == Arc::as_ptr(&identity.key).cast::<()>()
    }
}

/// Connectors made so far: locations that say the same share one, and so its sessions.
#[derive(Default)]
struct Connectors(HashMap<String, Arc<TlsConnector>>);

impl Tls {
    /// Reads the directives in force. `protocols` are offered to servers (ALPN).
    ///
    /// # Errors
    /// What cannot be read, or what this TLS cannot do.
    pub(crate) fn read<S>(
        pass: PassView<'_>,
        builder: &mut Builder<'_, S>,
        protocols: &[&[u8]],
    ) -> Result<Self, ConfError> {
        let view = pass.view;
        let directives = PeerDirectives {
            ciphers: pass.nearest("ssl_ciphers"),
            commands: pass.nearest_all("ssl_conf_command"),
            key_log: pass.nearest("ssl_key_log"),
            versions: versions(pass),
        };
        let offers = directives.read(view, builder)?;
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
            revoked: file(pass, builder, "ssl_crl")?,
            identity: identity(pass, builder, offers.pair)?,
            server_name: pass.flag("ssl_server_name"),
            session_reuse: pass.flag("ssl_session_reuse"),
            versions: Some(offers.versions),
            suites: offers.suites,
            groups: offers.groups,
            key_log: offers.key_log,
            protocols: protocols.iter().map(|name| name.to_vec()).collect(),
        };
        let name = pass.template("ssl_name", builder)?;
        let connector = connector(pass, builder, &settings)?;
        let by_name = match offers.pair {
            None => by_name(pass, builder)?,
            Some(_) => None,
        };
        Ok(Self {
            connector,
            by_name,
            name,
        })
    }

    /// What begins the sessions of a request or session: with the certificate that its variables
    /// name, which is read off the lane. `None`: it cannot be read, and the log says why.
    pub(crate) async fn connector<S: Subject>(&self, subject: &S) -> Option<Arc<TlsConnector>> {
        let Some(by_name) = &self.by_name else {
            return Some(Arc::clone(&self.connector));
        };
        let names = by_name.certificates.names(subject);
        if names.iter().any(|[certificate, _]| certificate.is_empty()) {
            return Some(Arc::clone(&self.connector));
        }
        match by_name.certificates.source.load(names).done().await {
            Ok(loaded) => {
                let identity = loaded.into_iter().next()?;
                Some(by_name.ready(&self.connector, identity))
            }
            Err(why) => {
                subject.log(Level::Error, format_args!("{why}"));
                None
            }
        }
    }

    /// What begins sessions where no request is there: without a certificate that variables name.
    pub(crate) fn connector_without_request(&self) -> Arc<TlsConnector> {
        Arc::clone(&self.connector)
    }

    /// The name that the server must have: `..._ssl_name`, else the host of `..._pass`; without
    /// a port.
    pub(crate) fn name<S: Subject>(&self, subject: &S, host: &[u8]) -> String {
        without_port(match &self.name {
            Some(template) => template.value(subject),
            None => host.to_vec(),
        })
    }

    /// The same where no request is there: of `..._ssl_name` only what needs none.
    pub(crate) fn name_without_request(&self, host: &[u8]) -> String {
        let name = self.name.as_ref().and_then(Template::constant);
        without_port(name.unwrap_or(host).to_vec())
    }
}

impl ByName {
    /// The connector that shows a certificate, made from one that shows none.
    fn ready(&self, base: &TlsConnector, identity: Arc<CertifiedKey>) -> Arc<TlsConnector> {
        let make = |identity| Arc::new(base.with_identity(identity));
        if !self.keeps {
            return make(identity);
        }
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = ready.iter().find(|known| known.shows(&identity)) {
            return Arc::clone(&known.connector);
        }
        if ready.len() >= READY_MAX {
            // The oldest; who uses it holds it.
            ready.remove(0);
        }
        let connector = make(Arc::clone(&identity));
        ready.push(Ready {
            identity,
            connector: Arc::clone(&connector),
        });
        connector
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

fn connector<S>(
    pass: PassView<'_>,
    builder: &mut Builder<'_, S>,
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
            TlsError::NoVersion => "ssl_protocols",
            TlsError::Library(_) => "pass",
        };
        let entry = pass.nearest(directive);
        let span = entry.map_or(pass.view.end(), |entry| entry.span);
        let name = entry.map_or("", |entry| entry.argument(0));
        let path = builder.environment.conf_folder().join(name);
        let path = path.display();
        pass.view.error(
            span,
            match &error {
                TlsError::Trusted(why) => {
                    format!("SSL_CTX_load_verify_locations(\"{path}\") failed {why}")
                }
                TlsError::Revoked(why) => format!("X509_LOOKUP_load_file(\"{path}\") failed {why}"),
                TlsError::NoVersion | TlsError::Library(_) => error.to_string(),
            },
        )
    })?;
    let connector = Arc::new(connector);
    let connectors = builder.store::<Connectors>();
    connectors.0.insert(key, Arc::clone(&connector));
    Ok(connector)
}

fn identity<S>(
    pass: PassView<'_>,
    builder: &mut Builder<'_, S>,
    of_commands: Option<[&Entry; 2]>,
) -> Result<Option<Arc<CertifiedKey>>, ConfError> {
    let pair = match (of_commands, pair(pass)?) {
        (Some(pair), _) => pair,
        (None, Some(pair)) if !ssl::has_variables(pair) => pair,
        (None, _) => return Ok(None),
    };
    let passwords = pass.nearest("ssl_password_file");
    let key = ssl::certified_key(pass.view, builder, pair, passwords)?;
    Ok(Some(Arc::new(key)))
}

/// Our certificate, where variables name it or its key.
fn by_name<S>(
    pass: PassView<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Option<ByName>, ConfError> {
    let Some(pair) = pair(pass)? else {
        return Ok(None);
    };
    if !ssl::has_variables(pair) {
        return Ok(None);
    }
    let passwords = pass.nearest("ssl_password_file");
    let cache = pass.nearest("ssl_certificate_cache");
    let certificates = ssl::certificates_by_name(pass.view, builder, pair, passwords, cache)?;
    Ok(Some(ByName {
        certificates,
        keeps: cache.is_some_and(|entry| entry.argument(0) != "off"),
        ready: Mutex::default(),
    }))
}

/// The directives that name our certificate and its key; `None`: there is none.
fn pair(pass: PassView<'_>) -> Result<Option<[&Entry; 2]>, ConfError> {
    let named = |end: &str| {
        let entry = pass.nearest(end);
        entry.filter(|entry| !entry.argument(0).is_empty())
    };
    let Some(certificate) = named("ssl_certificate") else {
        return Ok(None);
    };
    let Some(key) = named("ssl_certificate_key") else {
        let (name, text) = (pass.name("ssl_certificate_key"), certificate.argument(0));
        let message = format!("no \"{name}\" is defined for certificate \"{text}\"");
        return Err(pass.view.error(certificate.span, message));
    };
    Ok(Some([certificate, key]))
}

/// The bytes of the file that the directive with this end of its name names; `None` where it is not
/// given, or empty.
fn file<S>(
    pass: PassView<'_>,
    builder: &mut Builder<'_, S>,
    end: &str,
) -> Result<Option<Vec<u8>>, ConfError> {
    let (view, entry) = (pass.view, pass.nearest(end));
    let Some(entry) = entry.filter(|entry| !entry.argument(0).is_empty()) else {
        return Ok(None);
    };
    let text = entry.argument(0);
    let path = builder.environment.conf_folder().join(text);
    match builder.environment.file_or_fifo(&path) {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(error) => Err(unreadable(view, entry, &path, &error)),
    }
}

fn unreadable(view: View<'_>, entry: &Entry, path: &Path, error: &std::io::Error) -> ConfError {
    let (path, errno) = (path.display(), Errno(error));
    let message = format!("cannot load certificate \"{path}\": open() failed {errno}");
    view.error(entry.span, message)
}

/// Of the versions that may be named, those before 1.2 are not spoken.
fn versions(pass: PassView<'_>) -> Vec<&'static SupportedProtocolVersion> {
    let entries = pass.nearest_all("ssl_protocols");
    let has = |name: &str| {
        let mut words = entries.iter().flat_map(|entry| entry.arguments.iter());
        entries.is_empty() || words.any(|word| word.text.eq_ignore_ascii_case(name))
    };
    let mut versions = vec![&TLS13, &TLS12];
    versions.retain(|version| {
        has(if **version == TLS13 {
            "TLSv1.3"
        } else {
            "TLSv1.2"
        })
    });
    versions
}
