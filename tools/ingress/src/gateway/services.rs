//! The Service of each Gateway: its ports lead to ports of the container that no other Gateway has,
//! and it is the record of which those are.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::analysis::Analysis;
use crate::gateway_objects::{Gateway, Listener};
use crate::objects::Objects;
use crate::options::{GatewayServices, Options};

/// The label by which the Services are known, and its value.
const MANAGER: (&str, &str) = ("app.kubernetes.io/managed-by", "turnpike-ingress");

/// The annotation with the Gateway's namespace and name.
const OWNER: &str = "turnpike/gateway";

/// The longest part of a Service's name that is the Gateway's; a label has 63 characters.
const NAME_LENGTH_MAX: usize = 40;

/// The changes that bring the Services to what the Gateways say.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Services that are missing or differ.
    pub(crate) applied: Vec<Service>,
    /// Names of Services whose Gateways have gone.
    pub(crate) removed: Vec<String>,
}

/// The port on which a listener is served: a port of the container that its Service leads to, and
/// the listener's own port where there are no Services. None: the Service is not there yet.
pub(crate) fn container_port(
    objects: &Objects,
    options: &Options,
    gateway: &Gateway,
    listener: &Listener,
) -> Option<u16> {
    let Some(services) = &options.gateway_services else {
        return Some(listener.port);
    };
    let own = service_of(objects, services, gateway)?;
    let port = target(own, listener.port, protocol(listener))?;
    let name = own.metadata.name.as_deref();
    let first = managed(objects, services).find(|service| targets(service).any(|at| at == port));
    // The older one keeps a port that two controllers have given away at the same time.
    let is_ours = first.is_some_and(|first| first.metadata.name.as_deref() == name);
    is_ours.then_some(port)
}

/// The Service of a Gateway, if it is there.
pub(crate) fn service_of<'a>(
    objects: &'a Objects,
    services: &GatewayServices,
    gateway: &Gateway,
) -> Option<&'a Service> {
    let key = (services.namespace.clone(), service_name(gateway));
    objects.services.get(&key)
}

/// The addresses under which a Service is reached from outside, as a Gateway's status has them.
pub(crate) fn addresses(service: &Service) -> Vec<Value> {
    let status = service.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    let entries = balancer.iter().flat_map(|balancer| balancer.ingress.iter());
    let given: Vec<Value> = entries
        .flatten()
        .filter_map(|entry| match (&entry.ip, &entry.hostname) {
            (Some(address), _) => Some(json!({"type": "IPAddress", "value": address})),
            (None, Some(name)) => Some(json!({"type": "Hostname", "value": name})),
            (None, None) => None,
        })
        .collect();
    let spec = service.spec.as_ref();
    if !given.is_empty() || kind_of(service) == "LoadBalancer" {
        return given;
    }
    let own = spec.and_then(|spec| spec.cluster_ip.as_deref());
    let own = own.filter(|address| !matches!(*address, "" | "None"));
    own.map(|address| json!({"type": "IPAddress", "value": address}))
        .into_iter()
        .collect()
}

fn kind_of(service: &Service) -> &str {
    let spec = service.spec.as_ref();
    let kind = spec.and_then(|spec| spec.type_.as_deref());
    kind.unwrap_or("ClusterIP")
}

/// What must change for every Gateway to have its Service. New ports are those behind the last one
/// that was given away, which is kept in `last`: the server may still end connections and flows of
/// a port that was given back.
pub(crate) fn wanted_services(
    objects: &Objects,
    options: &Options,
    analysis: &Analysis<'_>,
    last: &mut u16,
) -> Wanted {
    let Some(services) = &options.gateway_services else {
        return Wanted::default();
    };
    let mut used: BTreeSet<u16> = managed(objects, services).flat_map(targets).collect();
    let mut wanted = Wanted::default();
    let mut names = BTreeSet::new();
    for state in &analysis.gateways {
        let gateway = state.gateway;
        names.insert(service_name(gateway));
        let mut ports = BTreeMap::new();
        for state in &state.listeners {
            let listener = state.listener;
            let key = (listener.port, protocol(listener));
            if state.accepted.is_err() || ports.contains_key(&key) {
                continue;
            }
            let kept = container_port(objects, options, gateway, listener);
            let port = kept.or_else(|| {
                let port = free(services, &used, *last)?;
                *last = port;
                Some(port)
            });
            let Some(port) = port else {
                continue; // the ranges are used up; the status says that no address is assigned
            };
            used.insert(port);
            ports.insert(key, port);
        }
        let service = service(services, gateway, &ports);
        let now = service_of(objects, services, gateway);
        if !ports.is_empty() && !now.is_some_and(|now| is_as(now, &service)) {
            wanted.applied.push(service);
        }
    }
    let names_now = managed(objects, services).filter_map(|service| service.metadata.name.clone());
    wanted.removed = names_now.filter(|name| !names.contains(name)).collect();
    wanted
}

/// The first port of the ranges behind another one that nobody has, or the first before it.
fn free(services: &GatewayServices, used: &BTreeSet<u16>, last: u16) -> Option<u16> {
    let ranges = services.ports.iter();
    let ports = ranges.flat_map(|(first, last)| *first..=*last);
    let free: Vec<u16> = ports.filter(|port| !used.contains(port)).collect();
    let behind = free.iter().find(|port| **port > last);
    behind.or(free.first()).copied()
}

/// The Services of Gateways, the oldest first.
fn managed<'a>(
    objects: &'a Objects,
    services: &'a GatewayServices,
) -> impl Iterator<Item = &'a Service> {
    let first = (services.namespace.clone(), String::new());
    let all = objects.services.range(first..);
    let own = all.take_while(|((namespace, _), _)| *namespace == services.namespace);
    let mut own: Vec<&Service> = own.map(|(_, service)| service).collect();
    own.retain(|service| {
        let labels = service.metadata.labels.as_ref();
        let label = labels.and_then(|labels| labels.get(MANAGER.0));
        label.is_some_and(|label| label == MANAGER.1)
            && service
                .metadata
                .annotations
                .as_ref()
                .is_some_and(|all| all.contains_key(OWNER))
    });
    own.sort_by_key(|service| {
        let created = service.metadata.creation_timestamp.as_ref();
        (created.map(|time| time.0), service.metadata.name.clone())
    });
    own.into_iter()
}

/// The ports of the container that a Service leads to.
fn targets(service: &Service) -> impl Iterator<Item = u16> {
    let spec = service.spec.iter();
    let ports = spec.flat_map(|spec| spec.ports.iter().flatten());
    ports.filter_map(number_of)
}

fn target(service: &Service, port: u16, protocol: &str) -> Option<u16> {
    let spec = service.spec.iter();
    let mut ports = spec.flat_map(|spec| spec.ports.iter().flatten());
    let found = ports.find(|row| {
        row.port == i32::from(port) && row.protocol.as_deref().unwrap_or("TCP") == protocol
    });
    found.and_then(number_of)
}

fn number_of(port: &ServicePort) -> Option<u16> {
    match port.target_port {
        Some(IntOrString::Int(number)) => number.try_into().ok(),
        _ => None,
    }
}

fn protocol(listener: &Listener) -> &'static str {
    if listener.protocol == "UDP" {
        "UDP"
    } else {
        "TCP"
    }
}

/// The name of a Gateway's Service: two Gateways never share one.
fn service_name(gateway: &Gateway) -> String {
    let metadata = &gateway.metadata;
    let digest = digest(&format!("{}/{}", metadata.namespace, metadata.name));
    let name: String = metadata.name.chars().take(NAME_LENGTH_MAX).collect();
    format!("gateway-{}-{digest:08x}", name.replace('.', "-"))
}

/// FNV-1a, since the name must outlive the program: it is a record's.
fn digest(text: &str) -> u32 {
    let bytes = text.bytes();
    bytes.fold(0x811c_9dc5, |digest, byte| {
        (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn service(
    services: &GatewayServices,
    gateway: &Gateway,
    ports: &BTreeMap<(u16, &'static str), u16>,
) -> Service {
    let said = &gateway.spec.infrastructure;
    let mut labels = said.labels.clone();
    labels.insert(MANAGER.0.to_owned(), MANAGER.1.to_owned());
    let mut annotations = said.annotations.clone();
    let metadata = &gateway.metadata;
    let owner = format!("{}/{}", metadata.namespace, metadata.name);
    annotations.insert(OWNER.to_owned(), owner);
    let ports = ports.iter().map(|((port, protocol), target)| ServicePort {
        name: Some(format!("{}-{port}", protocol.to_ascii_lowercase())),
        port: i32::from(*port),
        protocol: Some((*protocol).to_owned()),
        target_port: Some(IntOrString::Int(i32::from(*target))),
        ..ServicePort::default()
    });
    let asked = gateway.spec.addresses.iter();
    let address = asked.filter_map(|address| address.value.clone()).next();
    Service {
        metadata: ObjectMeta {
            name: Some(service_name(gateway)),
            namespace: Some(services.namespace.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            type_: Some(services.kind.clone()),
            selector: Some(services.selector.clone()),
            ports: Some(ports.collect()),
            load_balancer_ip: address,
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Whether a Service has all that is wanted of it.
fn is_as(now: &Service, wanted: &Service) -> bool {
    let has = |now: &Option<BTreeMap<String, String>>,
               wanted: &Option<BTreeMap<String, String>>| {
        let mut wanted = wanted.iter().flatten();
        wanted.all(|(name, value)| {
            let now = now.as_ref().and_then(|now| now.get(name));
            now == Some(value)
        })
    };
    let rows = |service: &Service| -> BTreeSet<(i32, String, Option<u16>)> {
        let spec = service.spec.iter();
        let ports = spec.flat_map(|spec| spec.ports.iter().flatten());
        ports
            .map(|port| {
                let protocol = port.protocol.clone().unwrap_or_default();
                (port.port, protocol, number_of(port))
            })
            .collect()
    };
    let address = |service: &Service| {
        let spec = service.spec.as_ref();
        spec.and_then(|spec| spec.load_balancer_ip.clone())
    };
    has(&now.metadata.labels, &wanted.metadata.labels)
        && has(&now.metadata.annotations, &wanted.metadata.annotations)
        && rows(now) == rows(wanted)
        && kind_of(now) == kind_of(wanted)
        && address(now) == address(wanted)
}
