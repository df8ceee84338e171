//! What the objects of Gateway API are told: conditions with the specification's words.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::analysis::{Analysis, GatewayState, ListenerState, RouteState};
use super::policies::{PolicyState, ancestor, policies};
use super::references::{Reason, subject};
use super::services::{addresses, container_port, service_of};
use crate::findings::Subject;
use crate::gateway_objects::{GROUP, Gateway, GatewayClass, Metadata};
use crate::objects::Objects;
use crate::options::Options;

/// What is said to be there, by the specification's names. The official tests of each of them pass.
const FEATURES: &[&str] = &[
    "BackendTLSPolicy",
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayHTTPListenerIsolation",
    "GatewayPort8080",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendTimeout",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteSchemeRedirect",
    "ReferenceGrant",
    "TCPRoute",
    "TLSRoute",
    "TLSRouteModeTerminate",
    "UDPRoute",
];

/// A status that an object should have and does not have yet.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) kind: &'static str,
    /// Empty for a GatewayClass.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The version of the object that the status is about.
    pub(crate) resource_version: String,
    pub(crate) status: Value,
}

/// What all statuses are made of.
struct Scribe<'a> {
    objects: &'a Objects,
    options: &'a Options,
    /// Objects whose lines the server has refused.
    refused: &'a BTreeSet<Subject>,
    /// The time of changes.
    now: &'a str,
}

/// The statuses that are missing or differ.
pub(crate) fn statuses(
    objects: &Objects,
    options: &Options,
    analysis: &Analysis<'_>,
    refused: &BTreeSet<Subject>,
    now: &str,
) -> Vec<Status> {
    let scribe = Scribe {
        objects,
        options,
        refused,
        now,
    };
    let classes = objects.gateway_classes.values();
    let ours = classes.filter(|class| class.spec.controller_name == options.gateway_controller);
    let mut all: Vec<Status> = ours.filter_map(|class| scribe.class(class)).collect();
    all.extend(
        analysis
            .gateways
            .iter()
            .filter_map(|state| scribe.gateway(state)),
    );
    all.extend(scribe.routes(analysis));
    let policies = policies(objects, analysis);
    all.extend(policies.iter().filter_map(|state| scribe.policy(state)));
    all
}

/// A condition that is true, with the word for it.
fn met(word: &'static str) -> (bool, Reason) {
    (true, Reason::new(word, ""))
}

fn judged(result: &Result<(), Reason>, word: &'static str) -> (bool, Reason) {
    match result {
        Ok(()) => met(word),
        Err(reason) => (false, reason.clone()),
    }
}

impl Scribe<'_> {
    fn class(&self, class: &GatewayClass) -> Option<Status> {
        let accepted = match &class.spec.parameters_ref {
            None => met("Accepted"),
            Some(_) => {
                let text = "spec.parametersRef: no parameters are known";
                (false, Reason::new("InvalidParameters", text))
            }
        };
        let conditions = [("Accepted", accepted)];
        let now = &class.status["conditions"];
        let features: Vec<Value> = FEATURES.iter().map(|name| json!({"name": name})).collect();
        let status = json!({
            "conditions": self.conditions(now, &class.metadata, &conditions),
            "supportedFeatures": features,
        });
        changed("GatewayClass", &class.metadata, &class.status, status)
    }

    fn gateway(&self, state: &GatewayState<'_>) -> Option<Status> {
        let gateway = state.gateway;
        let addresses = self.addresses(gateway);
        let is_good =
            |state: &&ListenerState<'_>| state.accepted.is_ok() && state.conflict.is_none();
        let good = state.listeners.iter().filter(is_good).count();
        let accepted = match &state.refused {
            Some(reason) => (false, reason.clone()),
            None if good == state.listeners.len() => met("Accepted"),
            None => {
                let text = format!("{good} of {} listeners are taken", state.listeners.len());
                (good > 0, Reason::new("ListenersNotValid", text))
            }
        };
        let programmed = if !accepted.0 {
            (false, Reason::new("Invalid", accepted.1.text.clone()))
        } else if let Err(reason) = &addresses {
            (false, reason.clone())
        } else {
            met("Programmed")
        };
        let conditions = [("Accepted", accepted), ("Programmed", programmed)];
        let now = &gateway.status;
        let listeners: Vec<Value> = state
            .listeners
            .iter()
            .map(|listener| self.listener(gateway, listener, &now["listeners"]))
            .collect();
        let status = json!({
            "conditions": self.conditions(&now["conditions"], &gateway.metadata, &conditions),
            "listeners": listeners,
            "addresses": addresses.unwrap_or_default(),
        });
        changed("Gateway", &gateway.metadata, now, status)
    }

    /// The addresses of a Gateway.
    fn addresses(&self, gateway: &Gateway) -> Result<Vec<Value>, Reason> {
        let services = self.options.gateway_services.as_ref();
        let service = services.and_then(|services| service_of(self.objects, services, gateway));
        let given = service.map(addresses).unwrap_or_default();
        if given.is_empty() {
            let text = "its Service has no address yet";
            return Err(Reason::new("AddressNotAssigned", text));
        }
        let mut asked = gateway.spec.addresses.iter();
        let missing = asked.find_map(|asked| {
            let value = asked.value.as_deref()?;
            let is_given = given.iter().any(|given| given["value"] == value);
            (!is_given).then_some(value)
        });
        match missing {
            None => Ok(given),
            Some(value) => {
                let text = format!("address {value} is not given to its Service");
                Err(Reason::new("AddressNotUsable", text))
            }
        }
    }

    fn listener(&self, gateway: &Gateway, state: &ListenerState<'_>, now: &Value) -> Value {
        let listener = state.listener;
        let is_placed = container_port(self.objects, self.options, gateway, listener).is_some();
        let programmed = if !state.is_served() || state.resolved.is_err() {
            (false, Reason::new("Invalid", "see the other conditions"))
        } else if is_placed {
            met("Programmed")
        } else {
            (
                false,
                Reason::new("Pending", "its Service has no port for it yet"),
            )
        };
        let accepted = match &state.conflict {
            Some(reason) if state.accepted.is_ok() => (false, reason.clone()),
            _ => judged(&state.accepted, "Accepted"),
        };
        let conflicted = match &state.conflict {
            Some(reason) => (true, reason.clone()),
            None => (false, Reason::new("NoConflicts", "")),
        };
        let conditions = [
            ("Accepted", accepted),
            ("Conflicted", conflicted),
            ("Programmed", programmed),
            ("ResolvedRefs", judged(&state.resolved, "ResolvedRefs")),
        ];
        let mut listeners = now.as_array().into_iter().flatten();
        let now = listeners.find(|now| now["name"] == listener.name.as_str());
        let now = now.map_or(&Value::Null, |now| &now["conditions"]);
        let kinds = state.kinds.iter();
        let kinds: Vec<Value> = kinds
            .map(|kind| json!({"group": GROUP, "kind": kind}))
            .collect();
        json!({
            "name": listener.name,
            "attachedRoutes": state.attached,
            "supportedKinds": kinds,
            "conditions": self.conditions(now, &gateway.metadata, &conditions),
        })
    }

    /// The statuses of routes that name Gateways of ours, or did so.
    fn routes(&self, analysis: &Analysis<'_>) -> Vec<Status> {
        let mut all = Vec::new();
        for route in self.objects.routes.values() {
            let mut states = analysis.routes.iter();
            let state = states.find(|state| std::ptr::eq(state.route, route));
            let entries = route.status["parents"].as_array();
            let controller = &self.options.gateway_controller;
            let others = entries.into_iter().flatten();
            let others = others.filter(|entry| entry["controllerName"] != controller.as_str());
            let mut parents: Vec<Value> = others.cloned().collect();
            parents.extend(state.into_iter().flat_map(|state| self.parents(state)));
            let had = entries.map_or(0, Vec::len);
            if parents.is_empty() && had == 0 {
                continue;
            }
            let kind = subject(route).kind;
            let status = json!({"parents": parents});
            all.extend(changed(kind, &route.metadata, &route.status, status));
        }
        all
    }

    fn parents(&self, state: &RouteState<'_>) -> Vec<Value> {
        let route = state.route;
        let is_refused = self.refused.contains(&subject(route));
        let controller = self.options.gateway_controller.as_str();
        let parents = state.parents.iter().map(|parent| {
            let accepted = match &parent.attached {
                Err(reason) => (false, reason.clone()),
                Ok(_) if is_refused => {
                    let text = "the server refuses its configuration: see the event";
                    (false, Reason::new("UnsupportedValue", text))
                }
                Ok(_) => met("Accepted"),
            };
            let conditions = [
                ("Accepted", accepted),
                ("ResolvedRefs", judged(&state.resolved, "ResolvedRefs")),
            ];
            let reference = json!(parent.reference);
            let mut entries = route.status["parents"].as_array().into_iter().flatten();
            let now = entries.find(|entry| {
                entry["controllerName"] == controller && entry["parentRef"] == reference
            });
            let now = now.map_or(&Value::Null, |now| &now["conditions"]);
            json!({
                "parentRef": reference,
                "controllerName": controller,
                "conditions": self.conditions(now, &route.metadata, &conditions),
            })
        });
        parents.collect()
    }

    fn policy(&self, state: &PolicyState<'_>) -> Option<Status> {
        let policy = state.policy;
        let controller = self.options.gateway_controller.as_str();
        let entries = policy.status["ancestors"].as_array();
        let others = entries.into_iter().flatten();
        let others = others.filter(|entry| entry["controllerName"] != controller);
        let mut ancestors: Vec<Value> = others.cloned().collect();
        let conditions = [
            ("Accepted", judged(&state.accepted, "Accepted")),
            ("ResolvedRefs", judged(&state.resolved, "ResolvedRefs")),
        ];
        for gateway in &state.gateways {
            let own = ancestor(gateway);
            let mut entries = entries.into_iter().flatten();
            let now = entries
                .find(|entry| entry["controllerName"] == controller && entry["ancestorRef"] == own);
            let now = now.map_or(&Value::Null, |now| &now["conditions"]);
            ancestors.push(json!({
                "ancestorRef": own,
                "controllerName": controller,
                "conditions": self.conditions(now, &policy.metadata, &conditions),
            }));
        }
        if ancestors.is_empty() && entries.is_none_or(Vec::is_empty) {
            return None;
        }
        let status = json!({"ancestors": ancestors});
        changed("BackendTLSPolicy", &policy.metadata, &policy.status, status)
    }

    /// The conditions of an object. The time is that of the last change of each.
    fn conditions(
        &self,
        now: &Value,
        metadata: &Metadata,
        wanted: &[(&str, (bool, Reason))],
    ) -> Vec<Value> {
        let known: Vec<&Value> = now.as_array().into_iter().flatten().collect();
        let conditions = wanted.iter().map(|(kind, (is_met, reason))| {
            let status = if *is_met { "True" } else { "False" };
            let mut old = known.iter();
            let old = old.find(|old| old["type"] == *kind && old["status"] == status);
            let since = old.and_then(|old| old["lastTransitionTime"].as_str());
            json!({
                "type": kind,
                "status": status,
                "reason": reason.word,
                "message": reason.text,
                "observedGeneration": metadata.generation,
                "lastTransitionTime": since.unwrap_or(self.now),
            })
        });
        conditions.collect()
    }
}

/// A status, if the object does not have it yet.
fn changed(kind: &'static str, metadata: &Metadata, now: &Value, status: Value) -> Option<Status> {
    (!is_within(&status, now)).then(|| Status {
        kind,
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        resource_version: metadata.resource_version.clone(),
        status,
    })
}

/// Whether a value has all that another one has; the API server may add fields.
fn is_within(wanted: &Value, now: &Value) -> bool {
    match (wanted, now) {
        (Value::Object(wanted), now) => wanted
            .iter()
            .all(|(name, value)| is_within(value, &now[name])),
        (Value::Array(wanted), Value::Array(now)) => {
            wanted.len() == now.len()
                && wanted
                    .iter()
                    .zip(now)
                    .all(|(wanted, now)| is_within(wanted, now))
        }
        // Empty lists may be left out.
        (Value::Array(wanted), Value::Null) => wanted.is_empty(),
        (wanted, now) => wanted == now,
    }
}
