//! From Ingresses to servers and their locations, in ingress-nginx's order: the oldest Ingress has
//! a host and path first, and whoever comes later is told whose it is.

mod canary;
mod classes;
mod locations;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use k8s_openapi::api::networking::v1::{HTTPIngressPath, Ingress};

use crate::annotations::{Annotations, Read};
use crate::endpoints::{self, Port};
use crate::findings::{Finding, Level, Subject};
use crate::objects::Objects;
use crate::options::Options;
use crate::render::Without;
use crate::settings::Settings;
use crate::snippets;
use crate::values::split;

pub(crate) use classes::is_ours;
pub(crate) use locations::{Match, needs_patterns};

/// The host of the server for requests that no other server is for.
pub(crate) const CATCH_ALL: &str = "_";

/// An Ingress that is served.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) subject: Subject,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) annotations: Annotations,
}

/// What a request to a location may get from another group.
#[derive(Clone, Debug)]
pub(crate) struct Canary {
    pub(crate) tenant: Rc<Tenant>,
    pub(crate) port: Port,
}

/// A path of a server.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// The path as it is matched.
    pub(crate) path: String,
    /// The path as it is written.
    pub(crate) written_path: String,
    pub(crate) matched: Match,
    /// None: the server for all other requests.
    pub(crate) tenant: Option<Rc<Tenant>>,
    /// None: the default backend.
    pub(crate) port: Option<Port>,
    pub(crate) canary: Option<Canary>,
    /// Whether it stands for what no rule of its server matches.
    pub(crate) is_default: bool,
}

/// A host.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) locations: Vec<Location>,
    /// The namespace and name of the Secret with the certificate.
    pub(crate) secret: Option<(String, String)>,
    /// Whether a TLS section is for this host.
    pub(crate) has_tls: bool,
    /// The Ingresses that have annotations for the whole server, the oldest first.
    pub(crate) tenants: Vec<Rc<Tenant>>,
}

/// The servers of all Ingresses.
#[derive(Debug)]
pub(crate) struct Rules {
    /// By host.
    pub(crate) servers: BTreeMap<String, Server>,
    pub(crate) tenants: Vec<Rc<Tenant>>,
}

/// An Ingress with its tenant.
struct Entry<'a> {
    ingress: &'a Ingress,
    tenant: Rc<Tenant>,
}

/// Makes the servers.
pub(crate) fn rules(
    objects: &Objects,
    options: &Options,
    settings: &Settings,
    without: &Without,
    findings: &mut Vec<Finding>,
) -> Rules {
    let entries = entries(objects, options, settings, without, findings);
    let is_canary = |entry: &&Entry<'_>| entry.tenant.annotations.flag("canary");
    let default_port = options
        .default_backend
        .as_deref()
        .and_then(|text| text.split_once('/'))
        .and_then(|(namespace, name)| endpoints::first_port(objects, namespace, name));
    let mut servers = BTreeMap::new();
    servers.insert(CATCH_ALL.to_owned(), catch_all(default_port.clone()));
    for entry in entries.iter().filter(|entry| !is_canary(entry)) {
        add_servers(
            entry,
            options,
            default_port.as_ref(),
            &mut servers,
            findings,
        );
    }
    for entry in entries.iter().filter(|entry| !is_canary(entry)) {
        add_paths(entry, options, &mut servers, findings);
        add_tls(entry, objects, without, &mut servers, findings);
    }
    for entry in entries.iter().filter(is_canary) {
        canary::merge(entry.ingress, &entry.tenant, &mut servers, findings);
    }
    add_aliases(&mut servers, findings);
    for server in servers.values_mut() {
        locations::arrange(server, findings);
    }
    Rules {
        servers,
        tenants: entries.into_iter().map(|entry| entry.tenant).collect(),
    }
}

fn catch_all(port: Option<Port>) -> Server {
    Server {
        host: CATCH_ALL.to_owned(),
        aliases: Vec::new(),
        locations: vec![default_location(None, port)],
        secret: None,
        has_tls: false,
        tenants: Vec::new(),
    }
}

fn default_location(tenant: Option<Rc<Tenant>>, port: Option<Port>) -> Location {
    Location {
        path: "/".to_owned(),
        written_path: "/".to_owned(),
        matched: Match::Prefix,
        tenant,
        port,
        canary: None,
        is_default: true,
    }
}

/// The Ingresses that are ours and can be served, the oldest first.
fn entries<'a>(
    objects: &'a Objects,
    options: &Options,
    settings: &Settings,
    without: &Without,
    findings: &mut Vec<Finding>,
) -> Vec<Entry<'a>> {
    let mut ours: Vec<&Ingress> = objects
        .ingresses
        .values()
        .filter(|ingress| classes::is_ours(ingress, objects, options))
        .collect();
    ours.sort_by_key(|ingress| {
        let created = ingress
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        (
            created,
            ingress.metadata.namespace.clone(),
            ingress.metadata.name.clone(),
        )
    });
    let mut entries = Vec::new();
    for ingress in ours {
        let namespace = ingress.metadata.namespace.as_deref().unwrap_or("default");
        let name = ingress.metadata.name.as_deref().unwrap_or_default();
        let subject = Subject::new("Ingress", namespace, name);
        if without.objects.contains(&subject) {
            continue;
        }
        match annotations(ingress, &subject, options, settings, findings) {
            Ok(annotations) => entries.push(Entry {
                ingress,
                tenant: Rc::new(Tenant {
                    subject,
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    annotations,
                }),
            }),
            Err(text) => findings.push(Finding {
                subject,
                level: Level::LeftOut,
                text,
                awaits_other: false,
            }),
        }
    }
    entries
}

/// The annotations of an Ingress, whose paths and snippets are checked too.
///
/// # Errors
/// Why the Ingress is left out.
fn annotations(
    ingress: &Ingress,
    subject: &Subject,
    options: &Options,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<Annotations, String> {
    locations::check(ingress, settings)?;
    let none = BTreeMap::new();
    let written = ingress.metadata.annotations.as_ref().unwrap_or(&none);
    let prefix = &options.annotations_prefix;
    match Annotations::read(written, prefix, settings, subject, findings) {
        Read::Refused(text) => Err(text),
        Read::Served(annotations) => {
            snippets::check(&annotations, &options.stream_ports)?;
            Ok(annotations)
        }
    }
}

/// The hosts of an Ingress' rules with their paths.
fn hosts(ingress: &Ingress) -> impl Iterator<Item = (String, &[HTTPIngressPath])> {
    let rules = ingress
        .spec
        .iter()
        .flat_map(|spec| spec.rules.iter().flatten());
    rules.map(|rule| {
        let host = rule.host.as_deref().filter(|host| !host.is_empty());
        let host = host.unwrap_or(CATCH_ALL).to_ascii_lowercase();
        let paths = rule.http.as_ref().map(|http| http.paths.as_slice());
        (host, paths.unwrap_or_default())
    })
}

/// The names that an Ingress shares with others: hosts, aliases, and the ports of all snippets for
/// `stream` as one. Two Ingresses that have none in common cannot take anything from each other.
pub(crate) fn names(ingress: &Ingress, options: &Options) -> BTreeSet<String> {
    let annotation = |name: &str| {
        let annotations = ingress.metadata.annotations.as_ref()?;
        annotations.get(&format!("{}/{name}", options.annotations_prefix))
    };
    let mut names: BTreeSet<String> = hosts(ingress).map(|(host, _)| host).collect();
    let aliases = annotation("server-alias").into_iter();
    names.extend(
        aliases
            .flat_map(|list| split(list))
            .map(str::to_ascii_lowercase),
    );
    if annotation("from-to-www-redirect").is_some() {
        let others: Vec<String> = names.iter().map(|name| other_name(name)).collect();
        names.extend(others);
    }
    if annotation("stream-snippet").is_some() {
        names.insert("stream".to_owned());
    }
    let spec = ingress.spec.as_ref();
    if spec.is_some_and(|spec| spec.default_backend.is_some()) {
        names.insert(CATCH_ALL.to_owned());
    }
    names
}

/// The name with `www.` of one without, and the other way round.
pub(crate) fn other_name(host: &str) -> String {
    match host.strip_prefix("www.") {
        Some(rest) => rest.to_owned(),
        None => format!("www.{host}"),
    }
}

fn add_servers(
    entry: &Entry<'_>,
    options: &Options,
    default_port: Option<&Port>,
    servers: &mut BTreeMap<String, Server>,
    findings: &mut Vec<Finding>,
) {
    let spec = entry.ingress.spec.clone().unwrap_or_default();
    let own = spec
        .default_backend
        .as_ref()
        .and_then(|backend| backend.service.as_ref());
    let own = own.map(|service| Port::of(&entry.tenant.namespace, service));
    let has_rules = spec.rules.is_some_and(|rules| !rules.is_empty());
    if let Some(port) = own.clone()
        && !has_rules
    {
        let server = servers.get_mut(CATCH_ALL);
        let place = server.and_then(|server| server.locations.first_mut());
        match place {
            Some(location) if location.is_default && !options.is_catch_all_off => {
                location.tenant = Some(Rc::clone(&entry.tenant));
                location.port = Some(port);
                location.is_default = false;
            }
            _ => findings.push(Finding {
                subject: entry.tenant.subject.clone(),
                level: Level::LeftOut,
                text: "requests without a rule already belong to another Ingress, or are switched \
                    off"
                .to_owned(),
                awaits_other: false,
            }),
        }
    }
    for (host, _) in hosts(entry.ingress) {
        if host == CATCH_ALL && options.is_catch_all_off {
            findings.push(Finding {
                subject: entry.tenant.subject.clone(),
                level: Level::LeftOut,
                text: "a rule without a host is switched off by --disable-catch-all".to_owned(),
                awaits_other: false,
            });
            continue;
        }
        let port = own.clone().or_else(|| default_port.cloned());
        let server = servers.entry(host.clone()).or_insert_with(|| Server {
            host,
            aliases: Vec::new(),
            locations: vec![default_location(Some(Rc::clone(&entry.tenant)), port)],
            secret: None,
            has_tls: false,
            tenants: Vec::new(),
        });
        if !server
            .tenants
            .iter()
            .any(|tenant| Rc::ptr_eq(tenant, &entry.tenant))
        {
            server.tenants.push(Rc::clone(&entry.tenant));
        }
    }
}

fn add_paths(
    entry: &Entry<'_>,
    options: &Options,
    servers: &mut BTreeMap<String, Server>,
    findings: &mut Vec<Finding>,
) {
    let tenant = &entry.tenant;
    for (host, paths) in hosts(entry.ingress) {
        if host == CATCH_ALL && options.is_catch_all_off {
            continue;
        }
        let Some(server) = servers.get_mut(&host) else {
            continue;
        };
        for path in paths {
            let Some(service) = &path.backend.service else {
                findings.push(Finding {
                    subject: tenant.subject.clone(),
                    level: Level::LeftOut,
                    text: format!("{host}: a backend must be a Service"),
                    awaits_other: false,
                });
                continue;
            };
            let written = path.path.as_deref().filter(|path| !path.is_empty());
            let written = written.unwrap_or("/");
            let location = Location {
                path: written.to_owned(),
                written_path: written.to_owned(),
                matched: Match::of(&path.path_type),
                tenant: Some(Rc::clone(tenant)),
                port: Some(Port::of(&tenant.namespace, service)),
                canary: None,
                is_default: false,
            };
            if let Some(owner) = server.add(location) {
                findings.push(Finding {
                    subject: tenant.subject.clone(),
                    level: Level::LeftOut,
                    text: format!("{host}{written} belongs to {owner}, which is older"),
                    awaits_other: false,
                });
            }
        }
    }
}

impl Server {
    /// Adds a location, or returns whose it is already.
    fn add(&mut self, location: Location) -> Option<String> {
        let same = self.locations.iter_mut().find(|other| {
            other.written_path == location.written_path && other.matched == location.matched
        });
        match same {
            Some(other) if other.is_default => {
                *other = location;
                None
            }
            Some(other) => Some(match &other.tenant {
                Some(tenant) => tenant.subject.to_string(),
                None => "the default backend".to_owned(),
            }),
            None => {
                self.locations.push(location);
                None
            }
        }
    }

    /// The first value of an annotation for the whole server, with its Ingress.
    pub(crate) fn annotation(&self, name: &str) -> Option<(&Rc<Tenant>, &str)> {
        let mut tenants = self.tenants.iter();
        tenants.find_map(|tenant| Some((tenant, tenant.annotations.text(name)?)))
    }

    /// Whether any of its Ingresses has a flag on.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.tenants
            .iter()
            .any(|tenant| tenant.annotations.flag(name))
    }
}

fn add_tls(
    entry: &Entry<'_>,
    objects: &Objects,
    without: &Without,
    servers: &mut BTreeMap<String, Server>,
    findings: &mut Vec<Finding>,
) {
    let sections = entry
        .ingress
        .spec
        .iter()
        .flat_map(|spec| spec.tls.iter().flatten());
    let sections: Vec<_> = sections.collect();
    let namespace = &entry.tenant.namespace;
    for (host, _) in hosts(entry.ingress) {
        let Some(server) = servers.get_mut(&host) else {
            continue;
        };
        if server.has_tls {
            continue;
        }
        let named = sections.iter().find(|section| {
            let mut hosts = section.hosts.iter().flatten();
            hosts.any(|named| named.eq_ignore_ascii_case(&host))
        });
        // A section without hosts is for the hosts that its certificate names.
        let fitting = || {
            sections.iter().find(|section| {
                let secret = section.secret_name.as_deref().unwrap_or_default();
                crate::certificates::is_for_host(objects, namespace, secret, &host)
            })
        };
        let Some(section) = named.or_else(fitting) else {
            continue;
        };
        server.has_tls = true;
        let Some(secret) = section
            .secret_name
            .as_deref()
            .filter(|name| !name.is_empty())
        else {
            continue;
        };
        let subject = crate::certificates::subject(namespace, secret);
        let key = (namespace.clone(), secret.to_owned());
        let problem = if without.objects.contains(&subject) {
            Some("cannot be used".to_owned())
        } else if !objects.secrets.contains_key(&key) {
            Some("is missing".to_owned())
        } else if !crate::certificates::is_for_host(objects, namespace, secret, &host) {
            Some(format!("has no certificate for {host}"))
        } else {
            None
        };
        match problem {
            None => server.secret = Some(key),
            Some(problem) => findings.push(Finding {
                subject: entry.tenant.subject.clone(),
                level: Level::Note,
                text: format!(
                    "{host} has the default certificate, since Secret {namespace}/{secret} \
                     {problem}"
                ),
                awaits_other: false,
            }),
        }
    }
}

/// Gives servers their aliases: names that are no server's own, and no other's alias.
fn add_aliases(servers: &mut BTreeMap<String, Server>, findings: &mut Vec<Finding>) {
    let mut taken: Vec<String> = servers.keys().cloned().collect();
    for server in servers.values_mut() {
        let mut aliases = Vec::new();
        for tenant in &server.tenants {
            for alias in tenant
                .annotations
                .text("server-alias")
                .into_iter()
                .flat_map(split)
            {
                let alias = alias.to_ascii_lowercase();
                if taken.contains(&alias) || alias == CATCH_ALL {
                    findings.push(Finding {
                        subject: tenant.subject.clone(),
                        level: Level::LeftOut,
                        text: format!("the alias {alias} is a name of another server already"),
                        awaits_other: false,
                    });
                    continue;
                }
                taken.push(alias.clone());
                aliases.push(alias);
            }
            if !aliases.is_empty() {
                break;
            }
        }
        server.aliases = aliases;
    }
}
