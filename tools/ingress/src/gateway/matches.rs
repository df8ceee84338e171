//! The hosts that routes and listeners have in common, and which match of a host comes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::analysis::Analysis;
use crate::gateway_objects::{Listener, Route, RouteMatch, Rule};
use crate::values::only;

/// A match of a rule at a host of a listener.
#[derive(Clone, Debug)]
pub(crate) struct Attached<'a> {
    pub(crate) route: &'a Route,
    pub(crate) rule: &'a Rule,
    pub(crate) matched: RouteMatch,
}

/// The hosts that a listener and a route have in common; an empty one is every host.
pub(super) fn common_hosts(listener: &Listener, route: &Route) -> Vec<String> {
    let own = listener.hostname.as_deref().unwrap_or_default();
    let own = own.to_ascii_lowercase();
    if route.spec.hostnames.is_empty() {
        return common(&own, "").into_iter().collect();
    }
    let written = route.spec.hostnames.iter();
    written
        .filter_map(|host| common(&own, &host.to_ascii_lowercase()))
        .collect()
}

/// The matches of a Gateway's listener by their hosts; an empty host is every host. A listener's
/// own host is there in any case. Requests for a host belong to the listener of the port that names
/// it most closely: what another one has is left out.
pub(crate) fn hosts<'a>(
    analysis: &Analysis<'a>,
    gateway: usize,
    place: usize,
) -> BTreeMap<String, Vec<Attached<'a>>> {
    let listeners = &analysis.gateways[gateway].listeners;
    let listener = listeners[place].listener;
    let own = listener.hostname.as_deref().unwrap_or_default();
    let own = own.to_ascii_lowercase();
    let closer: Vec<String> = listeners
        .iter()
        .filter(|other| other.is_served() && other.listener.port == listener.port)
        .filter_map(|other| other.listener.hostname.as_deref())
        .map(str::to_ascii_lowercase)
        .filter(|other| *other != own && (own.is_empty() || covers(&own, other)))
        .collect();
    let mut hosts = BTreeMap::from([(own, Vec::new())]);
    for state in &analysis.routes {
        let mut common = BTreeSet::new();
        for parent in state
            .parents
            .iter()
            .filter(|parent| parent.gateway == gateway)
        {
            let attached = parent.attached.as_ref().into_iter().flatten();
            for (_, hosts) in attached.filter(|(listener, _)| *listener == place) {
                common.extend(hosts.iter().cloned());
            }
        }
        for host in common {
            if closer
                .iter()
                .any(|other| *other == host || covers(other, &host))
            {
                continue;
            }
            let list: &mut Vec<Attached<'a>> = hosts.entry(host).or_default();
            list.extend(matches_of(state.route));
        }
    }
    for list in hosts.values_mut() {
        list.sort_by_key(precedence); // rules of one route keep their order
    }
    hosts
}

/// The matches of a route's rules; a rule without any is for every request.
fn matches_of(route: &Route) -> impl Iterator<Item = Attached<'_>> {
    route.spec.rules.iter().flat_map(move |rule| {
        let matches = if rule.matches.is_empty() {
            vec![RouteMatch::default()]
        } else {
            rule.matches.clone()
        };
        matches.into_iter().map(move |matched| Attached {
            route,
            rule,
            matched,
        })
    })
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
