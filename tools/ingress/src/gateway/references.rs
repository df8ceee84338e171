//! Whether an object may name another one, and whether that one is there.

use crate::endpoints::Port;
use crate::findings::Subject;
use crate::gateway_objects::{GROUP, Reference, ReferenceGrant, Route};
use crate::objects::Objects;

/// Why something is not as an object wants it: the word for its condition, and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// One of the specification's words.
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

impl Reason {
    pub(crate) fn new(word: &'static str, text: impl Into<String>) -> Reason {
        Reason {
            word,
            text: text.into(),
        }
    }
}

/// The subject of a route's findings.
pub(crate) fn subject(route: &Route) -> Subject {
    let kind = match route.kind.as_str() {
        "GRPCRoute" => "GRPCRoute",
        "TLSRoute" => "TLSRoute",
        "TCPRoute" => "TCPRoute",
        "UDPRoute" => "UDPRoute",
        _ => "HTTPRoute",
    };
    Subject::new(kind, &route.metadata.namespace, &route.metadata.name)
}

/// Whether an object of one namespace may name one of another. Objects that name others are all of
/// Gateway API; those that are named are Kubernetes' own.
pub(crate) fn is_granted<'a>(
    grants: impl IntoIterator<Item = &'a ReferenceGrant>,
    from: (&str, &str),
    to: (&str, &str, &str),
) -> bool {
    let (from_kind, from_namespace) = from;
    let (to_kind, to_namespace, to_name) = to;
    from_namespace == to_namespace
        || grants.into_iter().any(|grant| {
            let mut sources = grant.spec.from.iter();
            let mut targets = grant.spec.to.iter();
            grant.metadata.namespace == to_namespace
                && sources.any(|source| {
                    source.group.as_deref() == Some(GROUP)
                        && source.kind.as_deref() == Some(from_kind)
                        && source.namespace.as_deref() == Some(from_namespace)
                })
                && targets.any(|target| {
                    let is_named = target.name.is_empty() || target.name == to_name;
                    target.group.as_deref().unwrap_or_default().is_empty()
                        && target.kind.as_deref() == Some(to_kind)
                        && is_named
                })
        })
}

/// The port of a Service that a route names as a backend.
///
/// # Errors
/// It is no Service, may not be named, or is not there.
pub(crate) fn backend(
    objects: &Objects,
    route: &Route,
    reference: &Reference,
) -> Result<Port, Reason> {
    let own = route.metadata.namespace.as_str();
    let namespace = reference.namespace.as_deref().unwrap_or(own);
    let name = reference.name.as_str();
    let group = reference.group.as_deref().unwrap_or_default();
    let kind = reference.kind.as_deref().unwrap_or("Service");
    if (group, kind) != ("", "Service") {
        let text = format!("a backend of kind {kind} is not served");
        return Err(Reason::new("InvalidKind", text));
    }
    let from = (subject(route).kind, own);
    if !is_granted(objects.grants.values(), from, (kind, namespace, name)) {
        let text = format!("no ReferenceGrant allows Service {namespace}/{name}");
        return Err(Reason::new("RefNotPermitted", text));
    }
    let absent = |text: String| Reason::new("BackendNotFound", text);
    let key = (namespace.to_owned(), name.to_owned());
    let service = objects.services.get(&key);
    let service =
        service.ok_or_else(|| absent(format!("there is no Service {namespace}/{name}")))?;
    let number = reference.port;
    let number = number.ok_or_else(|| absent(format!("backend {name} has no port")))?;
    let spec = service.spec.as_ref();
    let is_external = spec.is_some_and(|spec| spec.type_.as_deref() == Some("ExternalName"));
    let mut ports = spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    if !is_external && !ports.any(|port| port.port == i32::from(number)) {
        let text = format!("Service {namespace}/{name} has no port {number}");
        return Err(absent(text));
    }
    Ok(Port {
        namespace: namespace.to_owned(),
        service: name.to_owned(),
        port: number.to_string(),
    })
}

/// The protocol that a port of a Service says it speaks.
pub(crate) fn application_protocol<'a>(objects: &'a Objects, port: &Port) -> Option<&'a str> {
    let key = (port.namespace.clone(), port.service.clone());
    let spec = objects.services.get(&key)?.spec.as_ref()?;
    let mut ports = spec.ports.iter().flatten();
    let row = ports.find(|row| row.port.to_string() == port.port)?;
    row.app_protocol.as_deref()
}
