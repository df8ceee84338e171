//! Servers of Gateways. A match is a predicate location: paths, methods, fields and parameters
//! become a variable by maps, and the locations stand in the order of precedence.

use std::collections::BTreeMap;

use super::gateway_filters::{escaped, filtered, gateway_redirect, response_fields, rewritten};
use super::{Level, Renderer};
use crate::findings::Subject;
use crate::gateway::{
    Analysis, Attached, GatewayState, ListenerState, application_protocol, authorities, backend,
    checked, container_port, hosts, policy_of, subject,
};
use crate::gateway_objects::{Backend, BackendTlsPolicy, Gateway, Timeouts, Value};
use crate::text::{Text, literal, quoted};
use crate::values::only;

/// The time that stands for none: no request waits for so long.
const UNLIMITED: &str = "1d";

/// Where a listener is served.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The port that clients know.
    pub(super) port: u16,
    /// The port that the server listens on.
    container_port: u16,
    pub(super) is_secure: bool,
}

impl Place {
    /// What a server's `listen` has.
    fn ssl(self) -> &'static str {
        if self.is_secure { " ssl" } else { "" }
    }
}

impl Renderer<'_> {
    /// Writes the servers of all Gateways.
    pub(super) fn gateways(&mut self, text: &mut Text, analysis: &Analysis<'_>) {
        self.gateway_findings(analysis);
        let mut ports = BTreeMap::new();
        for (index, state) in analysis.gateways.iter().enumerate() {
            if state.refused.is_some() {
                continue;
            }
            for (at, listener) in state.listeners.iter().enumerate() {
                let Some(place) = self.place(state, listener, &mut ports) else {
                    continue;
                };
                let certificates = self.gateway_certificates(state.gateway, listener);
                for (host, matches) in hosts(analysis, index, at) {
                    self.gateway_server(text, place, &host, &certificates, &matches);
                }
            }
        }
        // Requests for no host of a listener; the ports of Ingresses have a server for them.
        let own = [self.options.http_port, self.options.https_port];
        for (port, place) in ports.into_iter().filter(|(port, _)| !own.contains(port)) {
            let ssl = place.ssl();
            text.block("server", |text| {
                text.directive(format!(
                    "listen {}{ssl} default_server",
                    self.listen_at(port)
                ));
                text.directive("return 404");
            });
        }
    }

    /// Where a listener is served; none if it is not.
    fn place(
        &mut self,
        state: &GatewayState<'_>,
        listener: &ListenerState<'_>,
        ports: &mut BTreeMap<u16, Place>,
    ) -> Option<Place> {
        let said = listener.listener;
        if !listener.is_served() || !matches!(said.protocol.as_str(), "HTTP" | "HTTPS") {
            return None;
        }
        let container_port = container_port(self.objects, self.options, state.gateway, said)?;
        let place = Place {
            port: said.port,
            container_port,
            is_secure: said.protocol == "HTTPS",
        };
        let first = *ports.entry(container_port).or_insert(place);
        if first.is_secure != place.is_secure {
            let subject = gateway_subject(state.gateway);
            let error = format!("listener {}: the port has another protocol", said.name);
            self.find(&subject, Level::LeftOut, error);
            return None;
        }
        self.gateway_ports.insert(container_port, said.port);
        Some(place)
    }

    /// Says what of Gateways and routes is not served.
    fn gateway_findings(&mut self, analysis: &Analysis<'_>) {
        for state in &analysis.gateways {
            let subject = gateway_subject(state.gateway);
            if let Some(reason) = &state.refused {
                self.find(&subject, Level::LeftOut, &reason.text);
            }
            for listener in &state.listeners {
                let name = &listener.listener.name;
                let reasons = [
                    listener.accepted.as_ref().err(),
                    listener.conflict.as_ref(),
                    listener.resolved.as_ref().err(),
                ];
                for reason in reasons.into_iter().flatten() {
                    let text = format!("listener {name}: {}", reason.text);
                    self.find_other(&subject, Level::LeftOut, text);
                }
            }
        }
        for state in &analysis.routes {
            for parent in &state.parents {
                if let Err(reason) = &parent.attached {
                    self.find_other(&subject(state.route), Level::LeftOut, &reason.text);
                }
            }
        }
    }

    pub(super) fn listen_at(&self, port: u16) -> String {
        match self.settings.list("bind-address").first() {
            Some(address) => format!("{address}:{port}"),
            None => port.to_string(),
        }
    }

    /// The files with the certificates and keys of a listener.
    pub(super) fn gateway_certificates(
        &mut self,
        gateway: &Gateway,
        listener: &ListenerState<'_>,
    ) -> Vec<String> {
        let mut paths = Vec::new();
        for (namespace, name) in &listener.certificates {
            match self.files.of_secret(self.objects, namespace, name) {
                Ok(files) => {
                    let pair = files.pair.iter();
                    paths.extend(pair.map(|path| path.display().to_string()));
                }
                Err(error) => self.find(&gateway_subject(gateway), Level::LeftOut, error),
            }
        }
        paths
    }

    fn gateway_server(
        &mut self,
        text: &mut Text,
        place: Place,
        host: &str,
        certificates: &[String],
        matches: &[Attached<'_>],
    ) {
        let mut inside = Text::inside_of(2);
        let name = if host.is_empty() { "~^" } else { host };
        inside.directive(format!("server_name {}", quoted(name)));
        let ssl = place.ssl();
        inside.directive(format!(
            "listen {}{ssl}",
            self.listen_at(place.container_port)
        ));
        for certificate in certificates {
            inside.directive(format!("ssl_certificate {}", quoted(certificate)));
            inside.directive(format!("ssl_certificate_key {}", quoted(certificate)));
        }
        inside.block("location /", |text| text.directive("return 404"));
        for attached in matches {
            let owner = subject(attached.route);
            if self.without.objects.contains(&owner) {
                continue;
            }
            let variable = match self.predicate(attached, &owner) {
                Ok(variable) => variable,
                Err(error) => {
                    self.find(&owner, Level::LeftOut, error);
                    continue;
                }
            };
            let mut part = Text::inside_of(3);
            let mut beside = Text::inside_of(2);
            self.gateway_location((&mut part, &mut beside), attached, place, &owner);
            let mut whole = Text::inside_of(2);
            whole.around(&format!("location {variable}"), part);
            whole.append(beside);
            inside.owned(&owner, |text| text.append(whole));
        }
        text.around("server", inside);
    }

    /// The variable that is 1 for requests that a match is for.
    fn predicate(&mut self, attached: &Attached<'_>, owner: &Subject) -> Result<String, String> {
        let matched = &attached.matched;
        let mut conditions = Vec::new();
        if let Some(path) = &matched.path {
            conditions.push(("$uri".to_owned(), path_pattern(path)?));
        }
        match &matched.method {
            Some(serde_json::Value::String(method)) if only(method, "") => {
                conditions.push(("$request_method".to_owned(), format!("^{method}$")));
            }
            Some(method) if method.is_object() => {
                conditions.push(("$uri".to_owned(), grpc_pattern(method)?));
            }
            Some(_) => return Err("a method is invalid".to_owned()),
            None => {}
        }
        for (values, prefix) in [
            (&matched.headers, "$http_"),
            (&matched.query_params, "$arg_"),
        ] {
            for value in values {
                conditions.push((named_variable(prefix, &value.name)?, value_pattern(value)?));
            }
        }
        let number = self.number();
        let own = format!("$ingress_own_route_{number}");
        let mut words = Vec::new();
        for (index, (source, pattern)) in conditions.iter().enumerate() {
            let variable = format!("{own}_{index}");
            self.shared.owned(owner, |text| {
                text.block(format!("map {source} {variable}"), |text| {
                    text.directive(format!("{} 1", quoted(&format!("~{pattern}"))));
                    text.directive("default 0");
                });
            });
            words.push(variable);
        }
        let wanted = vec!["1"; words.len()].join("-");
        self.shared
            .block(format!("map {} {own}", quoted(&words.join("-"))), |text| {
                text.directive(format!("{} 1", quoted(&wanted)));
                text.directive("default 0");
            });
        Ok(own)
    }

    fn gateway_location(
        &mut self,
        (text, beside): (&mut Text, &mut Text),
        attached: &Attached<'_>,
        place: Place,
        owner: &Subject,
    ) {
        let filtered = match filtered(&attached.rule.filters) {
            Ok(filtered) => filtered,
            Err(error) => {
                self.find(owner, Level::Closed, format!("{error}; the answer is 500"));
                text.directive("return 500");
                return;
            }
        };
        response_fields(text, &filtered.response);
        if let Some(cors) = &filtered.cors {
            self.gateway_cors(text, cors);
        }
        if let Some(redirect) = &filtered.redirect {
            gateway_redirect(text, attached, place, redirect);
            return;
        }
        let group = match self.gateway_group(attached, owner) {
            Ok(group) => group,
            Err(code) => {
                text.directive(format!("return {code}"));
                return;
            }
        };
        let tls = match self.backend_tls(attached) {
            Ok(tls) => tls,
            Err(error) => {
                self.find_other(owner, Level::Closed, format!("{error}; the answer is 500"));
                text.directive("return 500");
                return;
            }
        };
        let times = &attached.rule.timeouts;
        let is_grpc = attached.route.kind == "GRPCRoute";
        let protocol = if is_grpc { "grpc" } else { "proxy" };
        self.gateway_times(text, protocol, times, owner);
        for line in tls.iter().flatten() {
            text.directive(format!("{protocol}_ssl_{line}"));
        }
        let secure = if tls.is_some() { "s" } else { "" };
        let host = filtered.rewrite.hostname.as_deref();
        let host = host.map_or("$best_http_host".to_owned(), literal);
        self.fields(text, protocol, &host, "$connection_upgrade");
        self.request_fields_of(text, protocol, &filtered.request);
        for mirror in &filtered.mirrors {
            self.gateway_mirror((text, beside), attached, (mirror, &filtered.request), owner);
        }
        if let Some(path) = &filtered.rewrite.path {
            let (pattern, target) = rewritten(attached, path);
            let target = quoted(&target);
            text.directive(format!("rewrite {} {target} break", quoted(&pattern)));
        }
        if is_grpc {
            text.directive(format!("grpc_pass grpc{secure}://{group}"));
        } else {
            if self.speaks_http2(attached) {
                text.directive("proxy_http_version 2");
            }
            text.directive("proxy_redirect off");
            text.directive(format!("proxy_pass http{secure}://{group}"));
        }
    }

    /// The times of a rule: the server measures the wait for each part of the answer.
    fn gateway_times(
        &mut self,
        text: &mut Text,
        protocol: &str,
        times: &Timeouts,
        owner: &Subject,
    ) {
        let Some(time) = times.backend_request.as_ref().or(times.request.as_ref()) else {
            return;
        };
        let is_none = time.trim_end_matches(|unit: char| unit.is_ascii_alphabetic()) == "0";
        let time = if is_none { UNLIMITED } else { time };
        if !only(time, "") {
            let error = format!("timeout \"{}\" is not a time", time.escape_debug());
            self.find(owner, Level::LeftOut, error);
            return;
        }
        text.directive(format!("{protocol}_read_timeout {time}"));
        if !is_none {
            text.directive(format!("{protocol}_next_upstream_timeout {time}"));
        }
    }

    /// The group of a rule's backends, or a variable that names one by their weights; the status of
    /// the answer if there is none. Requests to a backend that is not there get 500, and to one
    /// without servers 503, as the specification says.
    fn gateway_group(&mut self, attached: &Attached<'_>, owner: &Subject) -> Result<String, u16> {
        let mut weighed = Vec::new();
        for named in &attached.rule.backend_refs {
            let weight = named.weight.unwrap_or(1);
            if weight > 0 {
                let group = self.gateway_backend(attached, named, owner);
                weighed.push((group, weight));
            }
        }
        let total: u64 = weighed.iter().map(|(_, weight)| u64::from(*weight)).sum();
        match weighed.as_slice() {
            [] => Err(500),
            [(group, _)] => group.clone(),
            _ => {
                let number = self.number();
                let variable = format!("$ingress_own_backend_{number}");
                let mut names = Vec::new();
                for (group, weight) in weighed {
                    names.push((self.group_or_answer(group), weight));
                }
                self.shared.block(
                    format!("split_clients \"$request_id-{number}\" {variable}"),
                    |text| {
                        let (last, others) = names.split_last().unwrap_or((&names[0], &[]));
                        for (group, weight) in others {
                            let share = f64::from(*weight) * 100.0 / total as f64;
                            text.directive(format!("{:.2}% {group}", share.clamp(0.01, 99.99)));
                        }
                        text.directive(format!("* {}", last.0));
                    },
                );
                Ok(variable)
            }
        }
    }

    /// What a location says about TLS with the backends of a rule, if a policy wants it.
    fn backend_tls(&mut self, attached: &Attached<'_>) -> Result<Option<Vec<String>>, String> {
        let objects = self.objects;
        let backends = attached.rule.backend_refs.iter();
        let backends = backends.filter(|named| named.weight != Some(0));
        let mut policies = backends.filter_map(|named| {
            let port = backend(objects, attached.route, &named.reference).ok()?;
            Some(policy_of(objects, &port))
        });
        let Some(first) = policies.next() else {
            return Ok(None);
        };
        let name = |policy: &BackendTlsPolicy| policy.metadata.name.clone();
        if policies.any(|policy| policy.map(name) != first.map(name)) {
            return Err("backends of one rule have several policies of TLS".to_owned());
        }
        let Some(policy) = first else {
            return Ok(None);
        };
        let named = |text: &str| format!("BackendTLSPolicy {}: {text}", policy.metadata.name);
        let authorities = authorities(objects, policy).map_err(|reason| named(&reason.text))?;
        checked(policy).map_err(|reason| named(&reason.text))?;
        let host = policy.spec.validation.hostname.as_str();
        if host.is_empty() || !only(host, ".-") {
            return Err(named("its hostname is not a name"));
        }
        let file = format!(
            "{}_{}.backend-ca.pem",
            policy.metadata.namespace, policy.metadata.name
        );
        let file = self.files.add(&file, authorities).display().to_string();
        Ok(Some(vec![
            "verify on".to_owned(),
            format!("trusted_certificate {}", quoted(&file)),
            "server_name on".to_owned(),
            format!("name {host}"),
        ]))
    }

    /// Whether every backend of a rule speaks HTTP/2 without TLS.
    fn speaks_http2(&self, attached: &Attached<'_>) -> bool {
        let backends = &attached.rule.backend_refs;
        let mut protocols = backends.iter().map(|named| {
            let port = backend(self.objects, attached.route, &named.reference).ok()?;
            application_protocol(self.objects, &port)
        });
        !backends.is_empty() && protocols.all(|protocol| protocol == Some("kubernetes.io/h2c"))
    }

    fn gateway_backend(
        &mut self,
        attached: &Attached<'_>,
        named: &Backend,
        owner: &Subject,
    ) -> Result<String, u16> {
        let port = match backend(self.objects, attached.route, &named.reference) {
            Ok(port) => port,
            Err(reason) => {
                let text = format!("{}; the answer is 500", reason.text);
                self.find_other(owner, Level::Closed, text);
                return Err(500);
            }
        };
        if let Some(filter) = named.filters.first() {
            let text = format!("filter {} of a backend is not served", filter.kind);
            self.find(owner, Level::Closed, format!("{text}; the answer is 500"));
            return Err(500);
        }
        let missing = self.servers(&port).missing.clone();
        let group = self.plain_group(&port);
        group.ok_or_else(|| {
            let text = missing.unwrap_or_default();
            self.find_other(owner, Level::Closed, format!("{text}; the answer is 503"));
            503
        })
    }

    /// A group, or the one whose server gives this answer to every request.
    fn group_or_answer(&mut self, group: Result<String, u16>) -> String {
        let code = match group {
            Ok(group) => return group,
            Err(code) => code,
        };
        let name = format!("ingress_own_answer_{code}");
        if !self.zones.insert(name.clone()) {
            return name;
        }
        let folder = self.options.temporary.display();
        let socket = quoted(&format!("unix:{folder}/turnpike-answer-{code}.sock"));
        self.shared.block(format!("upstream {name}"), |text| {
            text.directive(format!("server {socket}"));
        });
        self.shared.block("server", |text| {
            text.directive(format!("listen {socket}"));
            text.directive("access_log off");
            text.directive(format!("return {code}"));
        });
        name
    }
}

fn gateway_subject(gateway: &Gateway) -> Subject {
    Subject::new(
        "Gateway",
        &gateway.metadata.namespace,
        &gateway.metadata.name,
    )
}

fn path_pattern(path: &Value) -> Result<String, String> {
    if !path.value.starts_with('/') || path.value.chars().any(char::is_control) {
        return Err(format!("\"{}\" is not a path", path.value.escape_debug()));
    }
    Ok(match path.kind.as_deref().unwrap_or("PathPrefix") {
        "Exact" => format!("^{}$", escaped(&path.value)),
        "PathPrefix" => format!("^{}(/|$)", escaped(path.value.trim_end_matches('/'))),
        "RegularExpression" => format!("^{}$", path.value),
        kind => return Err(format!("a path of type {kind} is not served")),
    })
}

fn grpc_pattern(method: &serde_json::Value) -> Result<String, String> {
    let part = |name: &str| method[name].as_str().unwrap_or_default();
    let is_pattern = part("type") == "RegularExpression";
    let text = |name: &str| match (part(name), is_pattern) {
        ("", _) => "[^/]+".to_owned(),
        (value, true) => value.to_owned(),
        (value, false) => escaped(value),
    };
    let pattern = format!("^/{}/{}$", text("service"), text("method"));
    if pattern.chars().any(char::is_control) {
        Err("a method has control characters".to_owned())
    } else {
        Ok(pattern)
    }
}

fn value_pattern(value: &Value) -> Result<String, String> {
    if value.value.chars().any(char::is_control) {
        return Err("a value has control characters".to_owned());
    }
    Ok(match value.kind.as_deref().unwrap_or("Exact") {
        "Exact" => format!("^{}$", escaped(&value.value)),
        "RegularExpression" => format!("^(?:{})$", value.value),
        kind => return Err(format!("a match of type {kind} is not served")),
    })
}

fn named_variable(prefix: &str, name: &str) -> Result<String, String> {
    // The engine has no variable for a parameter with a hyphen.
    let others = if prefix == "$arg_" { "_" } else { "-_" };
    if !name.is_empty() && only(name, others) {
        Ok(format!(
            "{prefix}{}",
            name.to_ascii_lowercase().replace('-', "_")
        ))
    } else {
        Err(format!("\"{}\" cannot be matched by", name.escape_debug()))
    }
}
