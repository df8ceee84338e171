//! What a listener is: the kinds of routes that it takes, whether its references are there, and
//! whether it and another one exclude each other.

use std::collections::BTreeMap;

use super::references::{Reason, is_granted};
use crate::certificates::Files;
use crate::gateway_objects::{GROUP, Gateway, Listener, ListenerTls, Reference, Route};
use crate::objects::Objects;

/// The kinds of routes that a protocol has.
pub(crate) fn kinds_of(protocol: &str) -> &'static [&'static str] {
    match protocol {
        "HTTP" | "HTTPS" => &["HTTPRoute", "GRPCRoute"],
        "TLS" => &["TLSRoute"],
        "TCP" => &["TCPRoute"],
        "UDP" => &["UDPRoute"],
        _ => &[],
    }
}

/// The kinds of routes that a listener takes, and what is wrong with those that it names.
pub(crate) fn kinds(listener: &Listener) -> (Vec<&'static str>, Option<Reason>) {
    let all = kinds_of(&listener.protocol);
    let named = &listener.allowed_routes.kinds;
    if named.is_empty() || all.is_empty() {
        return (all.to_vec(), None);
    }
    let mut taken = Vec::new();
    let mut wrong = None;
    for kind in named {
        let is_ours = kind.group.as_deref().unwrap_or(GROUP) == GROUP;
        match all.iter().find(|known| is_ours && **known == kind.kind) {
            Some(known) => taken.push(*known),
            None => {
                let text = format!("routes of kind {} are not for this protocol", kind.kind);
                wrong = Some(Reason::new("InvalidRouteKinds", text));
            }
        }
    }
    (taken, wrong)
}

/// Whether a listener takes routes of a route's namespace.
pub(crate) fn takes_namespace(
    objects: &Objects,
    own_namespace: &str,
    listener: &Listener,
    route: &Route,
) -> bool {
    let wanted = &listener.allowed_routes.namespaces;
    match wanted.from.as_deref().unwrap_or("Same") {
        "All" => true,
        "Same" => route.metadata.namespace == own_namespace,
        "Selector" => {
            let selector = wanted.selector.clone().unwrap_or_default();
            let labels = objects.labels_of_namespace(&route.metadata.namespace);
            is_selected(&selector, &labels)
        }
        _ => false,
    }
}

/// Whether labels are those of a selector.
fn is_selected(
    selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    labels: &BTreeMap<String, String>,
) -> bool {
    let mut pairs = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    pairs.all(|(name, value)| labels.get(name) == Some(value))
        && expressions.all(|wanted| {
            let value = labels.get(&wanted.key);
            let values = wanted.values.as_deref().unwrap_or_default();
            let is_listed = value.is_some_and(|value| values.contains(value));
            match wanted.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// The Secrets with a listener's certificates, by namespace and name.
///
/// # Errors
/// The listener has none, or one that may not be named or cannot be used.
pub(crate) fn certificates(
    objects: &Objects,
    gateway: &Gateway,
    tls: &ListenerTls,
) -> Result<Vec<(String, String)>, Reason> {
    if tls.certificate_refs.is_empty() {
        let text = "there is no certificate";
        return Err(Reason::new("InvalidCertificateRef", text));
    }
    let own = gateway.metadata.namespace.as_str();
    let references = tls.certificate_refs.iter();
    references
        .map(|reference| certificate(objects, own, reference))
        .collect()
}

fn certificate(
    objects: &Objects,
    own: &str,
    reference: &Reference,
) -> Result<(String, String), Reason> {
    let namespace = reference.namespace.as_deref().unwrap_or(own);
    let name = reference.name.as_str();
    let group = reference.group.as_deref().unwrap_or_default();
    let kind = reference.kind.as_deref().unwrap_or("Secret");
    let wrong = |text: String| Reason::new("InvalidCertificateRef", text);
    if (group, kind) != ("", "Secret") {
        return Err(wrong(format!("a certificate of kind {kind} is not known")));
    }
    let to = ("Secret", namespace, name);
    if !is_granted(objects.grants.values(), ("Gateway", own), to) {
        let text = format!("no ReferenceGrant allows Secret {namespace}/{name}");
        return Err(Reason::new("RefNotPermitted", text));
    }
    let files = Files::default().of_secret(objects, namespace, name);
    let pair = files.map_err(wrong)?.pair;
    pair.ok_or_else(|| wrong(format!("Secret {namespace}/{name} has no key")))?;
    Ok((namespace.to_owned(), name.to_owned()))
}

/// Whether TLS ends at a listener or is passed through.
pub(crate) fn mode(listener: &Listener) -> &str {
    let tls = listener.tls.as_ref();
    let mode = tls.and_then(|tls| tls.mode.as_deref());
    mode.unwrap_or("Terminate")
}

/// Why a listener and others of its Gateway exclude each other: all of them are in conflict.
pub(crate) fn conflict(all: &[Listener], listener: &Listener) -> Option<Reason> {
    let place = |listener: &Listener| (listener.port, listener.protocol == "UDP");
    let use_of = |listener: &Listener| {
        let mode = if listener.protocol == "TLS" {
            mode(listener)
        } else {
            ""
        };
        (listener.protocol.clone(), mode.to_owned())
    };
    let host = |listener: &Listener| {
        let host = listener.hostname.as_deref().unwrap_or_default();
        host.to_ascii_lowercase()
    };
    let mut others = all
        .iter()
        .filter(|other| other.name != listener.name && place(other) == place(listener));
    let same_host = others.clone().any(|other| host(other) == host(listener));
    if let Some(other) = others.find(|other| use_of(other) != use_of(listener)) {
        let text = format!("listener {} has another protocol for this port", other.name);
        return Some(Reason::new("ProtocolConflict", text));
    }
    let text = "another listener has this port and host";
    same_host.then(|| Reason::new("HostnameConflict", text))
}
