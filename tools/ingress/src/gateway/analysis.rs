//! Which listeners and routes of Gateways that are ours go together, and why others do not. Both
//! the configuration and the status come of it.

use super::listeners::{certificates, conflict, kinds, kinds_of, mode, takes_namespace};
use super::matches::common_hosts;
use super::references::{Reason, backend, subject};
use crate::gateway_objects::{GROUP, Gateway, Listener, Reference, Route};
use crate::objects::Objects;
use crate::options::Options;

/// The Gateways that are ours, and the routes that name them.
#[derive(Default)]
pub(crate) struct Analysis<'a> {
    pub(crate) gateways: Vec<GatewayState<'a>>,
    pub(crate) routes: Vec<RouteState<'a>>,
}

/// A Gateway.
pub(crate) struct GatewayState<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) listeners: Vec<ListenerState<'a>>,
    /// Why it is not taken as a whole.
    pub(crate) refused: Option<Reason>,
}

/// A listener of a Gateway.
pub(crate) struct ListenerState<'a> {
    pub(crate) listener: &'a Listener,
    /// The kinds of routes that it takes.
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) accepted: Result<(), Reason>,
    /// Why an earlier listener excludes it.
    pub(crate) conflict: Option<Reason>,
    /// Whether all that it names is there.
    pub(crate) resolved: Result<(), Reason>,
    /// Whether TLS ends here.
    pub(crate) terminates: bool,
    /// The Secrets with its certificates.
    pub(crate) certificates: Vec<(String, String)>,
    /// The number of routes that are attached.
    pub(crate) attached: usize,
}

impl ListenerState<'_> {
    /// Whether requests are taken for it.
    pub(crate) fn is_served(&self) -> bool {
        self.accepted.is_ok()
            && self.conflict.is_none()
            && !self.kinds.is_empty()
            && (!self.terminates || !self.certificates.is_empty())
    }
}

/// A route with the Gateways that it names.
pub(crate) struct RouteState<'a> {
    pub(crate) route: &'a Route,
    pub(crate) parents: Vec<ParentState<'a>>,
    /// Whether all that it names is there.
    pub(crate) resolved: Result<(), Reason>,
}

/// What a reference of a route to a Gateway comes to.
pub(crate) struct ParentState<'a> {
    pub(crate) reference: &'a Reference,
    /// The place of the Gateway in [`Analysis::gateways`].
    pub(crate) gateway: usize,
    /// The places of the listeners that it is attached to, with the hosts in common.
    ///
    /// Why there are none, if so.
    pub(crate) attached: Result<Vec<(usize, Vec<String>)>, Reason>,
}

/// Looks at all Gateways and routes.
pub(crate) fn analyse<'a>(objects: &'a Objects, options: &Options) -> Analysis<'a> {
    let gateways = objects.gateways.values();
    let ours = gateways.filter(|gateway| is_ours(objects, options, gateway));
    let mut gateways: Vec<_> = ours.map(|gateway| look_at(objects, gateway)).collect();
    let mut routes = Vec::new();
    for route in objects.routes.values() {
        let references = route.spec.parent_refs.iter();
        let parents: Vec<_> = references
            .filter_map(|reference| parent(objects, &gateways, route, reference))
            .collect();
        let mut places: Vec<(usize, usize)> = Vec::new();
        for parent in &parents {
            let attached = parent.attached.as_ref().into_iter().flatten();
            places.extend(attached.map(|(listener, _)| (parent.gateway, *listener)));
        }
        places.sort_unstable();
        places.dedup(); // several references of a route may name one listener
        for (gateway, listener) in places {
            gateways[gateway].listeners[listener].attached += 1;
        }
        if !parents.is_empty() {
            routes.push(RouteState {
                route,
                parents,
                resolved: resolved(objects, route),
            });
        }
    }
    Analysis { gateways, routes }
}

/// Whether a Gateway is ours by its class. Without any class in a folder, all are.
fn is_ours(objects: &Objects, options: &Options, gateway: &Gateway) -> bool {
    match objects
        .gateway_classes
        .get(&gateway.spec.gateway_class_name)
    {
        Some(class) => class.spec.controller_name == options.gateway_controller,
        None => objects.gateway_classes.is_empty() && options.gateway_services.is_none(),
    }
}

fn look_at<'a>(objects: &Objects, gateway: &'a Gateway) -> GatewayState<'a> {
    let listeners = gateway.spec.listeners.iter();
    let listeners = listeners
        .map(|listener| look_at_listener(objects, gateway, listener))
        .collect();
    let parameters = gateway.spec.infrastructure.parameters_ref.as_ref();
    let refused = parameters.map(|reference| {
        let kind = reference.kind.as_deref().unwrap_or_default();
        let text = format!("infrastructure.parametersRef: parameters of kind {kind} are not known");
        Reason::new("InvalidParameters", text)
    });
    GatewayState {
        gateway,
        listeners,
        refused,
    }
}

fn look_at_listener<'a>(
    objects: &Objects,
    gateway: &Gateway,
    listener: &'a Listener,
) -> ListenerState<'a> {
    let (kinds, wrong_kinds) = kinds(listener);
    let mut state = ListenerState {
        listener,
        kinds,
        accepted: Ok(()),
        conflict: None,
        resolved: wrong_kinds.map_or(Ok(()), Err),
        terminates: false,
        certificates: Vec::new(),
        attached: 0,
    };
    if kinds_of(&listener.protocol).is_empty() {
        let text = format!("protocol {} is not served", listener.protocol);
        state.accepted = Err(Reason::new("UnsupportedProtocol", text));
        return state;
    }
    state.conflict = conflict(&gateway.spec.listeners, listener);
    if state.conflict.is_some() {
        state.kinds.clear(); // it takes no route
    }
    let tls = listener.tls.clone().unwrap_or_default();
    match (listener.protocol.as_str(), mode(listener)) {
        ("HTTPS" | "TLS", "Terminate") => {
            state.terminates = true;
            match certificates(objects, gateway, &tls) {
                Ok(found) => state.certificates = found,
                Err(reason) => state.resolved = Err(reason),
            }
        }
        ("HTTPS", mode) => {
            let text = format!("TLS mode {mode} is not for HTTPS");
            state.accepted = Err(Reason::new("UnsupportedValue", text));
        }
        _ => {}
    }
    state
}

/// What a reference of a route comes to; none if it names nothing of ours.
fn parent<'a>(
    objects: &Objects,
    gateways: &[GatewayState<'_>],
    route: &Route,
    reference: &'a Reference,
) -> Option<ParentState<'a>> {
    let own = route.metadata.namespace.as_str();
    let namespace = reference.namespace.as_deref().unwrap_or(own);
    let group = reference.group.as_deref().unwrap_or(GROUP);
    let kind = reference.kind.as_deref().unwrap_or("Gateway");
    if (group, kind) != (GROUP, "Gateway") {
        return None;
    }
    let gateway = gateways.iter().position(|state| {
        let metadata = &state.gateway.metadata;
        metadata.name == reference.name && metadata.namespace == namespace
    })?;
    let attached = attached(objects, &gateways[gateway], route, reference);
    Some(ParentState {
        reference,
        gateway,
        attached,
    })
}

/// The listeners that a reference attaches a route to, with the hosts in common.
fn attached(
    objects: &Objects,
    state: &GatewayState<'_>,
    route: &Route,
    reference: &Reference,
) -> Result<Vec<(usize, Vec<String>)>, Reason> {
    let name = &state.gateway.metadata.name;
    let mut listeners: Vec<_> = state.listeners.iter().enumerate().collect();
    listeners.retain(|(_, state)| {
        let listener = state.listener;
        let section = reference.section_name.as_ref();
        section.is_none_or(|section| *section == listener.name)
            && reference.port.is_none_or(|port| port == listener.port)
    });
    if listeners.is_empty() {
        let text = format!("Gateway {name} has no listener with this name and port");
        return Err(Reason::new("NoMatchingParent", text));
    }
    let own = &state.gateway.metadata.namespace;
    listeners.retain(|(_, state)| {
        state.kinds.contains(&subject(route).kind)
            && takes_namespace(objects, own, state.listener, route)
    });
    if listeners.is_empty() {
        let text = format!(
            "no listener of Gateway {name} accepts routes of this kind and \
            namespace"
        );
        return Err(Reason::new("NotAllowedByListeners", text));
    }
    let attached = listeners
        .into_iter()
        .map(|(place, state)| (place, common_hosts(state.listener, route)));
    let attached: Vec<_> = attached.filter(|(_, hosts)| !hosts.is_empty()).collect();
    if attached.is_empty() {
        let text = format!("no host of the route is one of Gateway {name}'s");
        return Err(Reason::new("NoMatchingListenerHostname", text));
    }
    Ok(attached)
}

/// Whether every backend of a route is there, and each Service that gets copies; the first that is
/// not says why.
fn resolved(objects: &Objects, route: &Route) -> Result<(), Reason> {
    let rules = route.spec.rules.iter();
    let mut named = rules.flat_map(|rule| {
        let backends = rule.backend_refs.iter().map(|named| &named.reference);
        let filters = rule.filters.iter();
        let mirrors = filters.filter(|filter| filter.kind == "RequestMirror");
        backends.chain(mirrors.map(|filter| &filter.request_mirror.backend_ref))
    });
    named.try_for_each(|reference| backend(objects, route, reference).map(drop))
}
