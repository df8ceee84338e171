//! From a Service and its EndpointSlices to the servers of a group.

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::api::networking::v1::IngressServiceBackend;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::objects::Objects;
use crate::options::Options;
use crate::values::only;

/// The servers behind a port of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Servers {
    /// Addresses with ports, in the order of their texts.
    pub(crate) addresses: Vec<String>,
    /// A name of the DNS with a port, which is looked up again and again.
    pub(crate) external_name: Option<String>,
    /// The address of the Service itself.
    pub(crate) cluster_address: Option<String>,
    /// Why there are none.
    pub(crate) missing: Option<String>,
}

/// The port of a Service that a rule names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Port {
    pub(crate) namespace: String,
    pub(crate) service: String,
    /// The number or the name, as the rule has it.
    pub(crate) port: String,
}

impl Port {
    /// The port that a rule names.
    pub(crate) fn of(namespace: &str, backend: &IngressServiceBackend) -> Port {
        let port = backend.port.as_ref();
        let number = port
            .and_then(|port| port.number)
            .filter(|number| *number > 0);
        let name = port.and_then(|port| port.name.clone());
        Port {
            namespace: namespace.to_owned(),
            service: backend.name.clone(),
            port: number
                .map(|number| number.to_string())
                .or(name)
                .unwrap_or_default(),
        }
    }

    /// The name in logs and in `$proxy_upstream_name`, as ingress-nginx writes it.
    pub(crate) fn shown(&self) -> String {
        format!("{}-{}-{}", self.namespace, self.service, self.port)
    }

    /// The name of the group. No name of Kubernetes has an underscore, so two never share one.
    pub(crate) fn group(&self) -> String {
        format!("{}_{}_{}", self.namespace, self.service, self.port)
    }

    /// The servers behind it.
    pub(crate) fn servers(&self, objects: &Objects, options: &Options) -> Servers {
        let key = (self.namespace.clone(), self.service.clone());
        let missing = |text: String| Servers {
            missing: Some(text),
            ..Servers::default()
        };
        let Some(service) = objects.services.get(&key) else {
            let text = format!("there is no Service {}/{}", self.namespace, self.service);
            return missing(text);
        };
        let spec = service.spec.clone().unwrap_or_default();
        if spec.type_.as_deref() == Some("ExternalName") {
            return if options.is_external_name_off {
                missing("Services of type ExternalName are switched off".to_owned())
            } else {
                self.external(service).unwrap_or_else(|| {
                    missing(format!(
                        "Service {} has no external name and port",
                        self.service
                    ))
                })
            };
        }
        let ports = spec.ports.unwrap_or_default();
        let Some(port) = ports.iter().find(|port| self.is(port)) else {
            let text = format!("Service {} has no port {}", self.service, self.port);
            return missing(text);
        };
        let slices = objects
            .slices
            .get(&key)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let addresses = addresses(slices, port, zone_of(service, options));
        let is_empty = addresses.is_empty();
        Servers {
            addresses,
            external_name: None,
            cluster_address: spec
                .cluster_ip
                .filter(|address| address != "None" && !address.is_empty())
                .map(|address| with_port(&address, port.port)),
            missing: is_empty.then(|| {
                format!(
                    "Service {} has no ready endpoint for port {}",
                    self.service, self.port
                )
            }),
        }
    }

    fn is(&self, port: &ServicePort) -> bool {
        let target = match &port.target_port {
            Some(IntOrString::Int(number)) => number.to_string(),
            Some(IntOrString::String(name)) => name.clone(),
            None => String::new(),
        };
        port.port.to_string() == self.port
            || port.name.as_deref() == Some(&self.port)
            || (!target.is_empty() && target == self.port)
    }

    fn external(&self, service: &Service) -> Option<Servers> {
        let spec = service.spec.as_ref()?;
        let name = spec.external_name.as_deref()?;
        let ports = spec.ports.as_deref().unwrap_or_default();
        let port = ports.iter().find(|port| self.is(port));
        let number = port
            .map(|port| port.port)
            .or_else(|| self.port.parse().ok())?;
        let is_good = !name.is_empty() && only(name, "-._");
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        let server = with_port(name, number);
        (is_good || is_address).then(|| {
            if is_address {
                Servers {
                    addresses: vec![server],
                    ..Servers::default()
                }
            } else {
                Servers {
                    external_name: Some(server),
                    ..Servers::default()
                }
            }
        })
    }
}

/// The first port of a Service, for annotations that name no port.
pub(crate) fn first_port(objects: &Objects, namespace: &str, name: &str) -> Option<Port> {
    let key = (namespace.to_owned(), name.to_owned());
    let spec = objects.services.get(&key)?.spec.as_ref()?;
    let port = spec.ports.as_ref()?.first()?;
    Some(Port {
        namespace: namespace.to_owned(),
        service: name.to_owned(),
        port: port.port.to_string(),
    })
}

/// The zone by which a Service's endpoints are chosen.
fn zone_of<'a>(service: &Service, options: &'a Options) -> Option<&'a str> {
    let annotations = service.metadata.annotations.as_ref()?;
    let mode = annotations.get("service.kubernetes.io/topology-mode")?;
    let zone = options.zone.as_deref()?;
    mode.eq_ignore_ascii_case("auto").then_some(zone)
}

/// The addresses behind a port: those that are ready, else those that still serve while they
/// terminate, as kube-proxy does it.
fn addresses(slices: &[EndpointSlice], port: &ServicePort, zone: Option<&str>) -> Vec<String> {
    let mut ready = Vec::new();
    let mut terminating = Vec::new();
    let mut in_zone = Vec::new();
    for slice in slices {
        if slice.address_type == "FQDN" {
            continue;
        }
        let wanted = port.name.as_deref().unwrap_or_default();
        let ports = slice.ports.iter().flatten();
        let numbers = ports
            .filter(|port| port.name.as_deref().unwrap_or_default() == wanted)
            .filter_map(|port| port.port);
        for number in numbers {
            for endpoint in &slice.endpoints {
                let list = match state(endpoint) {
                    State::Ready => &mut ready,
                    State::Terminating => &mut terminating,
                    State::Away => continue,
                };
                let addresses = endpoint.addresses.iter().take(1);
                let good = addresses.filter(|address| address.parse::<std::net::IpAddr>().is_ok());
                for server in good.map(|address| with_port(address, number)) {
                    if zone.is_some_and(|zone| is_for_zone(endpoint, zone)) {
                        in_zone.push(server.clone());
                    }
                    list.push(server);
                }
            }
        }
    }
    let mut servers = match (in_zone.is_empty(), ready.is_empty()) {
        (false, _) => in_zone,
        (true, false) => ready,
        (true, true) => terminating,
    };
    servers.sort();
    servers.dedup();
    servers
}

enum State {
    Ready,
    Terminating,
    Away,
}

fn state(endpoint: &Endpoint) -> State {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    if conditions.ready.unwrap_or(true) {
        return State::Ready;
    }
    let is_serving = conditions.serving.unwrap_or(false);
    if is_serving && conditions.terminating.unwrap_or(false) {
        State::Terminating
    } else {
        State::Away
    }
}

fn is_for_zone(endpoint: &Endpoint, zone: &str) -> bool {
    let hints = endpoint.hints.as_ref();
    let mut zones = hints
        .and_then(|hints| hints.for_zones.as_ref())
        .into_iter()
        .flatten();
    zones.any(|hint| hint.name == zone)
}

fn with_port(address: &str, port: i32) -> String {
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}
