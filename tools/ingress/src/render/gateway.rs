//! Servers of Gateways. A match is a predicate location: paths, methods, fields and parameters
//! become a variable by maps, and the locations stand in the order of precedence.

use std::collections::{BTreeMap, BTreeSet};

use super::{Level, Renderer};
use crate::endpoints::Port;
use crate::findings::Subject;
use crate::gateway::{
    Attached, Filter, Gateway, HeaderModifier, Listener, Redirect, Reference, Value, attach,
    is_granted, subject,
};
use crate::text::{Text, literal, quoted};
use crate::values::only;

/// What a rule's filters make of a request.
#[derive(Default)]
struct Filtered {
    request: HeaderModifier,
    response: HeaderModifier,
    redirect: Option<Redirect>,
    rewrite: crate::gateway::Rewrite,
}

impl Renderer<'_> {
    /// Writes the servers of all Gateways.
    pub(super) fn gateways(&mut self, text: &mut Text) {
        let objects = self.objects;
        let mut findings = Vec::new();
        let all = attach(objects, &self.options.gateway_controller, &mut findings);
        self.findings.append(&mut findings);
        let mut ports = BTreeMap::new();
        for served in &all {
            let listener = served.listener;
            let is_secure = match listener.protocol.as_str() {
                "HTTP" => false,
                "HTTPS" => true,
                protocol => {
                    let subject = gateway_subject(served.gateway);
                    let name = &listener.name;
                    let error = format!("listener {name}: {protocol} is not served");
                    self.find(&subject, Level::LeftOut, error);
                    continue;
                }
            };
            if *ports.entry(listener.port).or_insert(is_secure) != is_secure {
                let subject = gateway_subject(served.gateway);
                let error = format!("listener {}: the port has another protocol", listener.name);
                self.find(&subject, Level::LeftOut, error);
                continue;
            }
            let Some(certificate) = self.gateway_certificate(served.gateway, listener) else {
                continue;
            };
            for (host, matches) in &served.hosts {
                self.gateway_server(text, listener, host, certificate.as_deref(), matches);
            }
        }
        // Requests for no host of a listener; the ports of Ingresses have a server for them.
        let own = [self.options.http_port, self.options.https_port];
        for (port, is_secure) in ports.into_iter().filter(|(port, _)| !own.contains(port)) {
            let ssl = if is_secure { " ssl" } else { "" };
            text.block("server", |text| {
                text.directive(format!(
                    "listen {}{ssl} default_server",
                    self.listen_at(port)
                ));
                text.directive("return 404");
            });
        }
    }

    fn listen_at(&self, port: u16) -> String {
        match self.settings.list("bind-address").first() {
            Some(address) => format!("{address}:{port}"),
            None => port.to_string(),
        }
    }

    /// The certificate of a listener; the outer none means that it cannot be served.
    fn gateway_certificate(
        &mut self,
        gateway: &Gateway,
        listener: &Listener,
    ) -> Option<Option<String>> {
        if listener.protocol != "HTTPS" {
            return Some(None);
        }
        let subject = gateway_subject(gateway);
        let tls = listener.tls.clone().unwrap_or_default();
        let reference = tls.certificate_refs.first();
        let file = match (tls.mode.as_deref().unwrap_or("Terminate"), reference) {
            ("Terminate", Some(reference)) => {
                let own = gateway.metadata.namespace.as_str();
                let namespace = reference.namespace.as_deref().unwrap_or(own);
                let to = ("Secret", namespace, reference.name.as_str());
                if is_granted(&self.objects.grants, ("Gateway", own), to) {
                    self.files
                        .of_secret(self.objects, namespace, &reference.name)
                } else {
                    Err("no ReferenceGrant allows the Secret".to_owned())
                }
            }
            ("Terminate", None) => Err("there is no certificate".to_owned()),
            (mode, _) => Err(format!("TLS mode {mode} is not served")),
        };
        let pair = file.and_then(|file| file.pair.ok_or("it has no key".to_owned()));
        match pair {
            Ok(pair) => Some(Some(pair.display().to_string())),
            Err(error) => {
                let error = format!("listener {}: {error}", listener.name);
                self.find(&subject, Level::LeftOut, error);
                None
            }
        }
    }

    fn gateway_server(
        &mut self,
        text: &mut Text,
        listener: &Listener,
        host: &str,
        certificate: Option<&str>,
        matches: &[Attached<'_>],
    ) {
        let mut inside = Text::inside_of(2);
        let name = if host.is_empty() { "~^" } else { host };
        inside.directive(format!("server_name {}", quoted(name)));
        let ssl = if certificate.is_some() { " ssl" } else { "" };
        inside.directive(format!("listen {}{ssl}", self.listen_at(listener.port)));
        if let Some(certificate) = certificate {
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
            self.gateway_location(&mut part, attached, &owner);
            let mut whole = Text::inside_of(2);
            whole.around(&format!("location {variable}"), part);
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
            Some(_) => return Err("a method is not good".to_owned()),
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

    fn gateway_location(&mut self, text: &mut Text, attached: &Attached<'_>, owner: &Subject) {
        let filtered = match filtered(&attached.rule.filters) {
            Ok(filtered) => filtered,
            Err(error) => {
                self.find(owner, Level::Closed, format!("{error}; the answer is 500"));
                text.directive("return 500");
                return;
            }
        };
        response_fields(text, &filtered.response);
        if let Some(redirect) = &filtered.redirect {
            self.gateway_redirect(text, attached, redirect);
            return;
        }
        let Some(group) = self.gateway_group(attached, owner) else {
            text.directive("return 500");
            return;
        };
        let times = &attached.rule.timeouts;
        let is_grpc = attached.route.kind == "GRPCRoute";
        let protocol = if is_grpc { "grpc" } else { "proxy" };
        if let Some(time) = times.request.as_ref().or(times.backend_request.as_ref()) {
            if only(time, "") && time != "0s" {
                text.directive(format!("{protocol}_read_timeout {time}"));
            } else {
                self.find(owner, Level::LeftOut, format!("timeout {time} is not used"));
            }
        }
        let host = filtered.rewrite.hostname.as_deref();
        let host = host.map_or("$best_http_host".to_owned(), literal);
        self.fields(text, protocol, &host, "$connection_upgrade");
        self.request_fields_of(text, protocol, &filtered.request);
        if let Some(path) = &filtered.rewrite.path {
            let (pattern, target) = rewritten(attached, path);
            let target = quoted(&target);
            text.directive(format!("rewrite {} {target} break", quoted(&pattern)));
        }
        if is_grpc {
            text.directive(format!("grpc_pass grpc://{group}"));
        } else {
            text.directive("proxy_redirect off");
            text.directive(format!("proxy_pass http://{group}"));
        }
    }

    fn gateway_redirect(&mut self, text: &mut Text, attached: &Attached<'_>, redirect: &Redirect) {
        let scheme = redirect.scheme.as_deref().filter(|scheme| only(scheme, ""));
        let host = redirect.hostname.as_deref().filter(|host| only(host, ".-"));
        let host = host.unwrap_or("$ingress_own_redirect_host");
        let port = match (redirect.port, scheme) {
            (Some(80), Some("http")) | (Some(443), Some("https")) => String::new(),
            (Some(port), _) => format!(":{port}"),
            // Without a scheme the port of the listener stays, unless it is the usual one.
            (None, None) => {
                if self.is_usual_port(attached) {
                    String::new()
                } else {
                    ":$server_port".to_owned()
                }
            }
            (None, Some(_)) => String::new(),
        };
        let code = redirect
            .status_code
            .filter(|code| (301..=308).contains(code))
            .unwrap_or(302);
        let path = match &redirect.path {
            None => "$request_uri".to_owned(),
            Some(path) => {
                let (pattern, target) = rewritten(attached, path);
                text.directive(format!("rewrite {} {}", quoted(&pattern), quoted(&target)));
                "$uri$is_args$args".to_owned()
            }
        };
        let scheme = scheme.unwrap_or("$scheme");
        let target = quoted(&format!("{scheme}://{host}{port}{path}"));
        text.directive(format!("return {code} {target}"));
    }

    /// Whether clients leave the listener's port out of addresses.
    fn is_usual_port(&self, attached: &Attached<'_>) -> bool {
        let gateways = self.objects.gateways.values();
        let mut listeners = gateways.flat_map(|gateway| {
            let named = attached
                .route
                .spec
                .parent_refs
                .iter()
                .any(|parent| parent.name == gateway.metadata.name);
            gateway.spec.listeners.iter().filter(move |_| named)
        });
        listeners.all(|listener| matches!(listener.port, 80 | 443))
    }

    /// The group of a rule's backends, or a variable that names one by their weights. Requests to
    /// a backend that is not there get 500, as the specification says.
    fn gateway_group(&mut self, attached: &Attached<'_>, owner: &Subject) -> Option<String> {
        let mut weighed = Vec::new();
        for reference in &attached.rule.backend_refs {
            let weight = reference.weight.unwrap_or(1);
            if weight > 0 {
                let group = self.gateway_backend(attached, reference, owner);
                weighed.push((group, weight));
            }
        }
        let total: u64 = weighed.iter().map(|(_, weight)| u64::from(*weight)).sum();
        match weighed.as_slice() {
            [] => None,
            [(group, _)] => group.clone(),
            _ => {
                let number = self.number();
                let variable = format!("$ingress_own_backend_{number}");
                self.shared.block(
                    format!("split_clients \"$request_id-{number}\" {variable}"),
                    |text| {
                        let (last, others) = weighed.split_last().unwrap_or((&weighed[0], &[]));
                        for (group, weight) in others {
                            let share = f64::from(*weight) * 100.0 / total as f64;
                            let group = group.as_deref().unwrap_or(NO_BACKEND);
                            text.directive(format!("{:.2}% {group}", share.clamp(0.01, 99.99)));
                        }
                        text.directive(format!("* {}", last.0.as_deref().unwrap_or(NO_BACKEND)));
                    },
                );
                self.no_backend();
                Some(variable)
            }
        }
    }

    fn gateway_backend(
        &mut self,
        attached: &Attached<'_>,
        reference: &Reference,
        owner: &Subject,
    ) -> Option<String> {
        let own = attached.route.metadata.namespace.as_str();
        let namespace = reference.namespace.as_deref().unwrap_or(own);
        let kind = reference.kind.as_deref().unwrap_or("Service");
        let closed = |renderer: &mut Self, text: String| {
            renderer.find(owner, Level::Closed, format!("{text}; the answer is 500"));
            None
        };
        if kind != "Service" {
            return closed(self, format!("a backend of kind {kind} is not served"));
        }
        let to = ("Service", namespace, reference.name.as_str());
        if !is_granted(&self.objects.grants, (owner.kind, own), to) {
            let name = &reference.name;
            return closed(
                self,
                format!("no ReferenceGrant allows Service {namespace}/{name}"),
            );
        }
        let Some(port) = reference.port else {
            return closed(self, format!("backend {} has no port", reference.name));
        };
        let port = Port {
            namespace: namespace.to_owned(),
            service: reference.name.clone(),
            port: port.to_string(),
        };
        let missing = self.servers(&port).missing.clone();
        let group = self.plain_group(&port);
        if let (None, Some(missing)) = (&group, missing) {
            return closed(self, missing);
        }
        group
    }

    /// Fields that a rule sets, adds and removes. One that is added stands behind what the client
    /// sent under its name.
    fn request_fields_of(&mut self, text: &mut Text, protocol: &str, modifier: &HeaderModifier) {
        for field in &modifier.set {
            let value = literal(&field.value);
            text.directive(format!("{protocol}_set_header {} {value}", field.name));
        }
        for field in &modifier.add {
            let sent = super::pass::variable_of(&field.name);
            let variable = format!("$ingress_own_added_{}", self.number());
            let value = literal(&field.value);
            let both = value.replacen('"', &format!("\"{sent},"), 1);
            self.shared.block(format!("map {sent} {variable}"), |text| {
                text.directive(format!("\"\" {value}"));
                text.directive(format!("default {both}"));
            });
            text.directive(format!("{protocol}_set_header {} {variable}", field.name));
        }
        for name in &modifier.remove {
            text.directive(format!("{protocol}_set_header {name} \"\""));
        }
    }

    /// The group whose server refuses every request.
    fn no_backend(&mut self) {
        if !self.zones.insert(NO_BACKEND.to_owned()) {
            return;
        }
        let socket = format!(
            "unix:{}/turnpike-no-backend.sock",
            self.options.temporary.display()
        );
        self.shared.block(format!("upstream {NO_BACKEND}"), |text| {
            text.directive(format!("server {}", quoted(&socket)));
        });
        self.shared.block("server", |text| {
            text.directive(format!("listen {}", quoted(&socket)));
            text.directive("access_log off");
            text.directive("return 500");
        });
    }
}

/// The group for backends that are not there.
const NO_BACKEND: &str = "ingress_own_no_backend";

fn gateway_subject(gateway: &Gateway) -> Subject {
    Subject::new(
        "Gateway",
        &gateway.metadata.namespace,
        &gateway.metadata.name,
    )
}

/// Sorts filters; each may come once, and one that is not known is an error.
fn filtered(filters: &[Filter]) -> Result<Filtered, String> {
    let mut filtered = Filtered::default();
    let mut seen = BTreeSet::new();
    for filter in filters {
        if !seen.insert(filter.kind.as_str()) {
            return Err(format!("filter {} is there twice", filter.kind));
        }
        match filter.kind.as_str() {
            "RequestHeaderModifier" => filtered.request = filter.request_header_modifier.clone(),
            "ResponseHeaderModifier" => filtered.response = filter.response_header_modifier.clone(),
            "RequestRedirect" => filtered.redirect = Some(filter.request_redirect.clone()),
            "URLRewrite" => filtered.rewrite = filter.url_rewrite.clone(),
            kind => return Err(format!("filter {kind} is not served")),
        }
    }
    for modifier in [&filtered.request, &filtered.response] {
        let names = modifier
            .set
            .iter()
            .chain(&modifier.add)
            .map(|field| &field.name);
        for name in names.chain(&modifier.remove) {
            if name.is_empty() || !only(name, "-_") {
                return Err(format!("\"{}\" is no field", name.escape_debug()));
            }
        }
        let mut values = modifier.set.iter().chain(&modifier.add);
        if values.any(|field| field.value.chars().any(char::is_control)) {
            return Err("a field's value has control characters".to_owned());
        }
    }
    let host = filtered.rewrite.hostname.as_deref().unwrap_or_default();
    if only(host, ".-") {
        Ok(filtered)
    } else {
        Err("the host of URLRewrite is no name".to_owned())
    }
}

fn response_fields(text: &mut Text, modifier: &HeaderModifier) {
    for field in &modifier.set {
        let value = literal(&format!("{}: {}", field.name, field.value));
        text.directive(format!("more_set_headers {value}"));
    }
    for field in &modifier.add {
        let value = literal(&format!("{}: {}", field.name, field.value));
        text.directive(format!("more_set_headers -a {value}"));
    }
    for name in &modifier.remove {
        text.directive(format!("more_clear_headers {name}"));
    }
}

/// The regular expression of a path and what it becomes.
fn rewritten(attached: &Attached<'_>, path: &crate::gateway::PathModifier) -> (String, String) {
    if let Some(full) = &path.replace_full_path {
        return ("^.*$".to_owned(), full.replace('$', "${literal_dollar}"));
    }
    let prefix = attached
        .matched
        .path
        .as_ref()
        .map_or("/", |path| path.value.as_str());
    let prefix = escaped(prefix.trim_end_matches('/'));
    let target = path.replace_prefix_match.as_deref().unwrap_or("/");
    let target = target
        .trim_end_matches('/')
        .replace('$', "${literal_dollar}");
    (format!("^{prefix}/?(.*)$"), format!("{target}/$1"))
}

fn path_pattern(path: &Value) -> Result<String, String> {
    if !path.value.starts_with('/') || path.value.chars().any(char::is_control) {
        return Err(format!("\"{}\" is no path", path.value.escape_debug()));
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

/// A text as a regular expression that stands for itself.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if !character.is_alphanumeric() && !"/-_".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
