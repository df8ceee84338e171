//! Which routes belong to which listeners and hosts, and which of their matches comes first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Gateway, Listener, Reference, Route, RouteMatch, Rule};
use crate::findings::{Finding, Level, Subject};
use crate::objects::Objects;
use crate::values::only;

/// A match of a rule at a host of a listener.
#[derive(Clone, Debug)]
pub(crate) struct Attached<'a> {
    pub(crate) route: &'a Route,
    pub(crate) rule: &'a Rule,
    pub(crate) matched: RouteMatch,
}

/// The matches of each listener by their hosts; an empty host is every host.
pub(crate) struct Served<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) listener: &'a Listener,
    pub(crate) hosts: BTreeMap<String, Vec<Attached<'a>>>,
}

/// Attaches routes to the listeners of the Gateways that are ours.
pub(crate) fn attach<'a>(
    objects: &'a Objects,
    controller: &str,
    findings: &mut Vec<Finding>,
) -> Vec<Served<'a>> {
    let mut all = Vec::new();
    for gateway in objects.gateways.values() {
        let class = objects
            .gateway_classes
            .get(&gateway.spec.gateway_class_name);
        let is_ours = match class {
            Some(class) => class.spec.controller_name == controller,
            None => objects.gateway_classes.is_empty(),
        };
        if !is_ours {
            continue;
        }
        for listener in &gateway.spec.listeners {
            let hosts = hosts(objects, gateway, listener, findings);
            all.push(Served {
                gateway,
                listener,
                hosts,
            });
        }
    }
    all
}

fn hosts<'a>(
    objects: &'a Objects,
    gateway: &Gateway,
    listener: &Listener,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, Vec<Attached<'a>>> {
    let mut hosts: BTreeMap<String, Vec<Attached<'a>>> = BTreeMap::new();
    for route in objects.routes.values() {
        let mut parents = route.spec.parent_refs.iter();
        if !parents.any(|parent| is_parent(parent, route, gateway, listener)) {
            continue;
        }
        let subject = subject(route);
        if !is_allowed(route, gateway, listener) {
            findings.push(Finding {
                subject,
                level: Level::LeftOut,
                text: format!(
                    "listener {} of Gateway {} takes no routes of this namespace",
                    listener.name, gateway.metadata.name
                ),
                awaits_other: false,
            });
            continue;
        }
        let own = listener.hostname.as_deref().unwrap_or_default();
        let written = if route.spec.hostnames.is_empty() {
            vec![String::new()]
        } else {
            route.spec.hostnames.clone()
        };
        let common: Vec<String> = written
            .iter()
            .filter_map(|host| common(own, &host.to_ascii_lowercase()))
            .collect();
        if common.is_empty() {
            findings.push(Finding {
                subject,
                level: Level::LeftOut,
                text: format!("no host of the route is one of listener {}", listener.name),
                awaits_other: false,
            });
        }
        for host in common {
            let list = hosts.entry(host).or_default();
            for rule in &route.spec.rules {
                let matches = if rule.matches.is_empty() {
                    vec![RouteMatch::default()]
                } else {
                    rule.matches.clone()
                };
                list.extend(matches.into_iter().map(|matched| Attached {
                    route,
                    rule,
                    matched,
                }));
            }
        }
    }
    for list in hosts.values_mut() {
        list.sort_by_key(precedence); // rules of one route keep their order
    }
    hosts
}

/// The subject of a route's findings.
pub(crate) fn subject(route: &Route) -> Subject {
    let kind = match route.kind.as_str() {
        "GRPCRoute" => "GRPCRoute",
        _ => "HTTPRoute",
    };
    Subject::new(kind, &route.metadata.namespace, &route.metadata.name)
}

fn is_parent(parent: &Reference, route: &Route, gateway: &Gateway, listener: &Listener) -> bool {
    let namespace = parent
        .namespace
        .as_deref()
        .unwrap_or(&route.metadata.namespace);
    parent.kind.as_deref().unwrap_or("Gateway") == "Gateway"
        && parent.name == gateway.metadata.name
        && namespace == gateway.metadata.namespace
        && parent
            .section_name
            .as_ref()
            .is_none_or(|name| *name == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
}

fn is_allowed(route: &Route, gateway: &Gateway, listener: &Listener) -> bool {
    match listener
        .allowed_routes
        .namespaces
        .from
        .as_deref()
        .unwrap_or("Same")
    {
        "All" => true,
        "Same" => route.metadata.namespace == gateway.metadata.namespace,
        _ => false, // labels of namespaces are not read
    }
}

/// The host that a listener and a route have in common; an empty one is every host.
fn common(listener: &str, route: &str) -> Option<String> {
    let is_name = |host: &str| only(host.strip_prefix("*.").unwrap_or(host), ".-");
    if !is_name(route) || !is_name(listener) {
        return None;
    }
    match (listener, route) {
        ("", host) | (host, "") => Some(host.to_owned()),
        (listener, route) if listener == route || covers(listener, route) => Some(route.to_owned()),
        (listener, route) if covers(route, listener) => Some(listener.to_owned()),
        _ => None,
    }
}

/// Whether a wildcard stands for a host, which may be a longer wildcard.
fn covers(wildcard: &str, host: &str) -> bool {
    let suffix = wildcard
        .strip_prefix('*')
        .filter(|suffix| suffix.starts_with('.'));
    suffix.is_some_and(|suffix| {
        host.strip_suffix(suffix)
            .is_some_and(|rest| !rest.is_empty() && rest != "*")
    })
}

/// What a match is sorted by: the specification's precedence, then the age and name of the route.
type Precedence = (
    u8,
    Reverse<usize>,
    bool,
    Reverse<usize>,
    Reverse<usize>,
    String,
    String,
);

fn precedence(attached: &Attached<'_>) -> Precedence {
    let matched = &attached.matched;
    let path = matched.path.as_ref();
    let kind = match path.and_then(|path| path.kind.as_deref()) {
        Some("Exact") => 0,
        Some("RegularExpression") => 1,
        _ => 2,
    };
    let length = match &matched.method {
        // Of gRPC: a service and a method are a longer path than a service.
        Some(method) if method.is_object() => {
            let part = |name: &str| method[name].as_str().map_or(0, str::len);
            part("service") * 1024 + part("method")
        }
        _ => path.map_or(0, |path| path.value.trim_end_matches('/').len()),
    };
    let metadata = &attached.route.metadata;
    (
        kind,
        Reverse(length),
        !matched
            .method
            .as_ref()
            .is_some_and(serde_json::Value::is_string),
        Reverse(matched.headers.len()),
        Reverse(matched.query_params.len()),
        metadata.creation_timestamp.clone(),
        format!("{}/{}", metadata.namespace, metadata.name),
    )
}
