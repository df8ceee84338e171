//! From the directives to issuers and certificates.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use instant_acme::Identifier;
use turnpike_conf::{Complaint, ConfError, Context, Entry, View, value};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_plan::environment::FolderKind;
use turnpike_plan::public_name;
use turnpike_upstream::{TlsConnector, TlsSettings};
use turnpike_wire::hex;

use super::certificate::{Certificate, Source};
use super::handler::{Answer, Part, Value};
use super::issuer::{Issuer, IssuerService, Live};
use super::key_type::KeyType;
use super::settings::{AccountKey, IssuerSettings};
use crate::common::by_location::ByLocation;
use crate::common::certificate_expiry::{self, Expiring};
use crate::common::issued_certificate::IssuedSource;
use crate::common::own_request::Outlet;
use crate::upstream;

/// The most CA certificates between an authority's server and a trusted one; OpenSSL's default is
/// no smaller.
const VERIFY_DEPTH: usize = 9;

/// What is known while a plan is built.
#[derive(Default)]
struct Store {
    /// The issuers by their names, and what sets one apart from others of that name.
    issuers: HashMap<String, (Arc<IssuerService>, String)>,
    certificates: ByLocation<Arc<Certificate>>,
}

/// Defines the variables.
pub(super) fn variables(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let certificates = builder.store::<Store>().certificates.clone();
    for (name, part) in [
        ("acme_certificate", Part::Chain),
        ("acme_certificate_key", Part::Key),
    ] {
        let certificates = certificates.clone();
        let value = Arc::new(Value { certificates, part });
        let defined = builder.variables.define_computed(name, value);
        defined.map_err(|message| view.error(view.span(), message))?;
    }
    Ok(())
}

/// Reads the issuers.
pub(super) fn issuers(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    if let Some(entry) = view.own("acme_shared_zone") {
        check_zone(entry).map_err(|message| view.error(entry.span, message))?;
    }
    for block in view.children("acme_issuer") {
        let name = block.argument(0);
        let made = if builder.store::<Store>().issuers.contains_key(name) {
            Err(format!("\"acme_issuer {name}\" is defined twice").into())
        } else {
            issuer(view, block, builder)
        };
        match made {
            Ok(issuer) => {
                let issuers = &mut builder.store::<Store>().issuers;
                issuers.insert(name.to_owned(), issuer);
            }
            Err(message) => builder.report(block.error(block.span(), message)),
        }
    }
    Ok(())
}

fn check_zone(entry: &Entry) -> Result<(), Complaint> {
    let text = entry.argument(0);
    let zone = text
        .strip_prefix("zone=")
        .and_then(|zone| zone.split_once(':'));
    let size = zone.and_then(|(name, size)| (!name.is_empty()).then(|| value::size(size))?);
    size.map(|_| ())
        .ok_or_else(|| format!("invalid zone \"{text}\": write zone=name:size").into())
}

fn issuer(
    view: View<'_>,
    block: View<'_>,
    builder: &mut Builder<'_>,
) -> Result<(Arc<IssuerService>, String), Complaint> {
    let settings = IssuerSettings::read(block, builder)?;
    if let Some(path) = &settings.state_path {
        builder.environment.folder(path, FolderKind::Named);
    }
    let connector = TlsConnector::new(&TlsSettings {
        verify: settings.verify,
        trusted: settings.trusted.to_vec(),
        verify_depth: VERIFY_DEPTH,
        server_name: true,
        session_reuse: true,
        ..TlsSettings::default()
    });
    let connector = connector.map_err(|error| error.to_string())?;
    let names = upstream::names(view, builder).map_err(|error| error.message)?;
    let log = builder
        .environment
        .error_log(&view.nearest_all("error_log"))
        .map_err(String::from)?;
    let key = zone_key(&settings);
    let make = || Arc::new(Issuer::new(settings.clone())) as Arc<dyn Any + Send + Sync>;
    let kept = builder.environment.zone(&key, &make).downcast();
    let issuer = kept.unwrap_or_else(|_| Arc::new(Issuer::new(settings.clone())));
    let live = Live {
        outlet: Arc::new(Outlet {
            names,
            connector: Arc::new(connector),
        }),
        log,
        certificates: Vec::new(),
    };
    let service = Arc::new(IssuerService {
        issuer,
        live: Mutex::new(live),
    });
    builder.service(service.clone());
    Ok((service, key))
}

/// What sets an issuer apart from those of other configurations: its state outlives a reload that
/// changes nothing of it.
fn zone_key(settings: &IssuerSettings) -> String {
    let given = match &settings.account_key {
        AccountKey::Given(key) => key.to_vec(),
        AccountKey::Generated => Vec::new(),
    };
    let external = settings.external_key.as_ref();
    let external = external.map(|external| (&external.id, &external.key));
    let text = format!(
        "{} {} {:?} {:?} {external:?} {:?} {:?} {} {}",
        settings.uri,
        settings.challenge,
        settings.challenge,
        settings.contacts,
        settings.profile,
        settings.state_path,
        settings.accepts_terms,
        hex::text(digest(&SHA256, &given).as_ref()),
    );
    let sum = digest(&SHA256, text.as_bytes());
    format!("acme:{}:{}", settings.name, hex::text(sum.as_ref()))
}

/// Adds to a location: challenges are answered before any location is looked for, and the
/// variables stand for the certificate of the server.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
    is_server: bool,
) -> Result<(), ConfError> {
    if is_server {
        *builder.store::<IssuedSource>() = IssuedSource::default();
    }
    let store = builder.store::<Store>();
    if store.issuers.is_empty() && view.nearest("acme_certificate").is_none() {
        return Ok(());
    }
    if is_server {
        draft.add_handler(HandlerPlace::Challenge, Arc::new(Answer));
    }
    let server = view.enclosing(Context::Server);
    let certificate = match server {
        Some(server) => certificate(server, builder, is_server)?,
        None => None,
    };
    if let Some(certificate) = certificate {
        if is_server {
            let source = Arc::new(Source(Arc::clone(&certificate)));
            builder.store::<IssuedSource>().source = Some(source);
        }
        let certificates = &builder.store::<Store>().certificates;
        certificates.insert(draft.index, Arc::new(certificate));
    }
    Ok(())
}

/// The directive of `http`, for a server that is secure and names no certificate.
fn of_all(server: View<'_>) -> Option<&Entry> {
    let http = server.enclosing(Context::Http)?;
    let entry = http.own("acme_certificate")?;
    let mut words = server
        .own_all("listen")
        .flat_map(|listen| listen.arguments.iter());
    let is_secure = words.any(|word| word.text == "ssl");
    let needs_one = is_secure && !server.flag("ssl_reject_handshake");
    (needs_one && server.nearest("ssl_certificate").is_none()).then_some(entry)
}

/// The names of a server that a public authority certifies. The others are warned of where
/// `tells`: an order for them would fail as a whole.
fn public_names(server: View<'_>, builder: &mut Builder<'_>, tells: bool) -> Vec<String> {
    let mut public = Vec::new();
    for entry in server.own_all("server_name") {
        for word in entry.arguments.iter() {
            match public_name::check(&word.text) {
                Ok(()) => public.push(word.text.clone()),
                Err(why) if tells => {
                    let name = &word.text;
                    let message = format!("no certificate is ordered for \"{name}\": it is {why}");
                    builder.warn(server, entry, message);
                }
                Err(_) => {}
            }
        }
    }
    public
}

/// The certificate of a server; its names that are left out are warned of where `tells`.
fn certificate(
    server: View<'_>,
    builder: &mut Builder<'_>,
    tells: bool,
) -> Result<Option<Arc<Certificate>>, ConfError> {
    let own = server.own("acme_certificate");
    let Some(entry) = own.or_else(|| of_all(server)) else {
        return Ok(None);
    };
    let names = match own {
        Some(_) => None,
        None => Some(public_names(server, builder, tells)),
    };
    if names.as_ref().is_some_and(Vec::is_empty) {
        builder.store::<IssuedSource>().lacks_name = true;
        return Ok(None);
    }
    let failed = |message: Complaint| server.error(entry.span, message);
    let name = entry.argument(0);
    let known = builder.store::<Store>().issuers.get(name).cloned();
    let Some((issuer, issuer_key)) = known else {
        return Err(failed(
            format!("acme issuer \"{name}\" is not found").into(),
        ));
    };
    let by_dns = issuer.issuer.shows_by_dns();
    let wanted = wanted(server, entry, by_dns, names.as_deref());
    let (identifiers, key_type) = wanted.map_err(failed)?;
    let made = Arc::new(Certificate::new(name, identifiers, key_type));
    let key = format!("{issuer_key}:{}", made.file_name());
    let make = || Arc::clone(&made) as Arc<dyn Any + Send + Sync>;
    let kept = builder.environment.zone(&key, &make).downcast();
    let certificate = kept.unwrap_or_else(|_| Arc::clone(&made));
    issuer.add(&certificate);
    let log = builder.error_log(server)?;
    certificate_expiry::watch(builder, &log, Arc::clone(&certificate) as Arc<dyn Expiring>);
    Ok(Some(certificate))
}

/// What a directive asks for; `names` are the server's where it stands in `http`.
fn wanted(
    server: View<'_>,
    entry: &Entry,
    by_dns: bool,
    names: Option<&[String]>,
) -> Result<(Vec<Identifier>, KeyType), Complaint> {
    let mut key_type = KeyType::P256;
    let mut identifiers = Vec::new();
    for word in entry.arguments.iter().skip(1) {
        match word.text.strip_prefix("key=") {
            Some(text) => {
                let known = KeyType::parse(text);
                key_type = known.ok_or_else(|| format!("invalid key \"{text}\""))?;
            }
            None if names.is_some() => {
                return Err(format!(
                    "\"acme_certificate\" in \"http\" takes the names of each server: \
                     \"{}\" belongs in a server",
                    word.text
                )
                .into());
            }
            None => identifiers.push(identifier(&word.text, by_dns)?),
        }
    }
    for name in names.unwrap_or_default() {
        identifiers.push(identifier(name, by_dns)?);
    }
    if identifiers.is_empty() {
        let names = server.own_all("server_name");
        for word in names.flat_map(|entry| entry.arguments.iter()) {
            // A name with a dot before it stands for the name itself too.
            let name = word.text.strip_prefix('.').unwrap_or(&word.text);
            if !name.is_empty() {
                identifiers.push(identifier(name, by_dns)?);
            }
        }
    }
    let mut found: Vec<Identifier> = Vec::new();
    for identifier in identifiers {
        if !found.contains(&identifier) {
            found.push(identifier);
        }
    }
    if found.is_empty() {
        Err("\"acme_certificate\" has no identifier, and the server has no name".into())
    } else {
        Ok((found, key_type))
    }
}

fn identifier(text: &str, by_dns: bool) -> Result<Identifier, Complaint> {
    let address = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = address.parse() {
        return Ok(Identifier::Ip(address));
    }
    let invalid = |why: &str| format!("\"{text}\" cannot be in a certificate: {why}");
    if text.starts_with('~') {
        return Err(invalid("it is a pattern; list the names in \"acme_certificate\"").into());
    }
    let is_wildcard = text.starts_with("*.");
    if is_wildcard && !by_dns {
        return Err(invalid("a wildcard needs the challenge dns-01").into());
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let name = text.strip_prefix("*.").unwrap_or(text);
    if name.bytes().all(fits) && !name.starts_with('.') {
        Ok(Identifier::Dns(text.to_ascii_lowercase()))
    } else {
        Err(invalid("it is not a DNS name").into())
    }
}
