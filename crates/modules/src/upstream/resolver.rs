//! `resolver`: who knows the addresses of names, at every level where one may be asked.

use std::any::Any;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_plan::builder::Builder;
use turnpike_upstream::{Address, ResolveError, Resolver, ResolverSettings, ServersFile};

use super::status_zones::StatusZones;
use super::url::{Target, Url};

/// Port of name servers.
const DEFAULT_PORT: u16 = 53;

/// The file in which the system's name servers stand (resolv.conf(5)).
const SYSTEM_SERVERS: &str = "/etc/resolv.conf";

/// How long a lookup may take where nothing is said, in milliseconds; nginx's.
const TIMEOUT_MS: u64 = 30_000;

/// The resolver of a level, and how long it is waited for.
#[derive(Clone)]
pub(crate) struct Names {
    pub(super) resolver: Arc<Resolver>,
    pub(super) timeout_ms: u64,
}

impl Names {
    /// The addresses of a name, with this port.
    ///
    /// # Errors
    /// See [`ResolveError`].
    pub(crate) async fn addresses(
        &self,
        name: &str,
        port: u16,
    ) -> Result<Vec<Address>, ResolveError> {
        let found = self.resolver.addresses(name, self.timeout_ms).await?;
        let addresses = found.addresses.into_iter();
        let addresses = addresses.map(|address| Address::Inet((address, port).into()));
        Ok(addresses.collect())
    }
}

/// The resolver that holds in a block, where there is one.
///
/// # Errors
/// nginx's.
pub(crate) fn names<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Option<Names>, ConfError> {
    let entry = view.nearest("resolver");
    let Some(entry) = entry.filter(|entry| !is_off(entry)) else {
        return Ok(None);
    };
    let resolver = open(entry, builder).map_err(|message| view.error(entry.span, message))?;
    resolver.log_to(builder.error_log(view)?);
    let timeout_ms = match view.nearest("resolver_timeout") {
        None => TIMEOUT_MS,
        Some(entry) => value::milliseconds(entry.argument(0)).unwrap_or(TIMEOUT_MS),
    };
    Ok(Some(Names {
        resolver,
        timeout_ms,
    }))
}

/// Reads the directive where it is written, whether or not anybody asks the resolver.
pub(super) fn check<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<(), ConfError> {
    match view.own("resolver") {
        None => Ok(()),
        Some(_) => names(view, builder).map(|_| ()),
    }
}

/// Whether it says that nobody is asked, although a level above names servers; as in Angie.
fn is_off(entry: &Entry) -> bool {
    entry.argument(0) == "off" && entry.arguments.len() == 1
}

/// The resolver of these words: one for all levels and configurations that have the same.
fn open<S>(entry: &Entry, builder: &mut Builder<'_, S>) -> Result<Arc<Resolver>, Complaint> {
    let words: Vec<&str> = entry
        .arguments
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    let (settings, zone) = read(&words, builder.environment.conf_folder())?;
    let make = || Arc::new(Resolver::new(settings.clone())) as Arc<dyn Any + Send + Sync>;
    let key = format!("resolver:{}", words.join(" "));
    let resolver = builder.environment.zone(&key, &make);
    let fresh = || Arc::new(Resolver::new(settings.clone()));
    let resolver = resolver.downcast().unwrap_or_else(|_| fresh());
    if let Some(zone) = zone {
        StatusZones::of(builder).add(zone, &resolver);
    }
    Ok(resolver)
}

/// Reads the words of a directive: how names are looked up, and the zone that counts it.
fn read<'a>(
    words: &[&'a str],
    conf_folder: &Path,
) -> Result<(ResolverSettings, Option<&'a str>), Complaint> {
    let mut zone = None;
    let mut settings = ResolverSettings {
        servers: Vec::new(),
        servers_file: None,
        valid_ms: None,
        ipv4: true,
        ipv6: true,
    };
    for word in words {
        let invalid = || format!("invalid parameter: {word}");
        let switch = |text: &str| match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(invalid()),
        };
        if let Some(text) = word.strip_prefix("valid=") {
            let seconds = value::seconds(text).ok_or_else(invalid)?;
            settings.valid_ms = Some(seconds * 1000);
        } else if let Some(text) = word.strip_prefix("ipv4=") {
            settings.ipv4 = switch(text)?;
        } else if let Some(text) = word.strip_prefix("ipv6=") {
            settings.ipv6 = switch(text)?;
        } else if let Some(name) = word.strip_prefix("status_zone=") {
            zone = Some(name).filter(|name| !name.is_empty());
            zone.ok_or_else(invalid)?;
        } else if *word == "conf" {
            settings.servers_file = Some(servers_file(SYSTEM_SERVERS.into()));
        } else if let Some(path) = word.strip_prefix("conf=") {
            if path.is_empty() {
                return Err(invalid().into());
            }
            settings.servers_file = Some(servers_file(conf_folder.join(path)));
        } else {
            settings.servers.extend(servers(word)?);
        }
    }
    if !settings.ipv4 && !settings.ipv6 {
        return Err("\"ipv4\" and \"ipv6\" cannot both be \"off\"".into());
    }
    if settings.servers.is_empty() && settings.servers_file.is_none() {
        return Err("no name servers defined".into());
    }
    Ok((settings, zone))
}

fn servers_file(path: PathBuf) -> ServersFile {
    ServersFile {
        path,
        port: DEFAULT_PORT,
    }
}

fn servers(word: &str) -> Result<Vec<SocketAddr>, Complaint> {
    let place = |what: &str| format!("{what} in resolver \"{word}\"");
    let url = Url::parse(word).map_err(place)?;
    if let Target::Unix(_) = url.target {
        return Err(place("invalid host").into());
    }
    let addresses = url.addresses(DEFAULT_PORT).map_err(place)?;
    let inet = addresses.into_iter().filter_map(|address| match address {
        Address::Inet(address) => Some(address),
        Address::Unix(_) => None,
    });
    Ok(inet.collect())
}
