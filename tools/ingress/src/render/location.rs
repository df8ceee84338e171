//! A location: its variables, redirects, what it passes on, and to whom.

use std::rc::Rc;

use super::server::{ERROR_FIELDS, Surroundings};
use super::{Level, Renderer};
use crate::endpoints::Port;
use crate::rules::{Location, Match, Tenant};
use crate::text::{Text, literal, quoted};

/// Directives that an annotation or the key of its name sets, with what stands behind the value.
pub(super) const PASS: &[(&str, &str, &str)] = &[
    ("client_max_body_size", "proxy-body-size", ""),
    ("proxy_connect_timeout", "proxy-connect-timeout", "s"),
    ("proxy_send_timeout", "proxy-send-timeout", "s"),
    ("proxy_read_timeout", "proxy-read-timeout", "s"),
    ("grpc_connect_timeout", "proxy-connect-timeout", "s"),
    ("grpc_send_timeout", "proxy-send-timeout", "s"),
    ("grpc_read_timeout", "proxy-read-timeout", "s"),
    ("proxy_buffering", "proxy-buffering", ""),
    ("proxy_buffer_size", "proxy-buffer-size", ""),
    ("proxy_busy_buffers_size", "proxy-busy-buffers-size", ""),
    ("proxy_max_temp_file_size", "proxy-max-temp-file-size", ""),
    ("proxy_request_buffering", "proxy-request-buffering", ""),
    ("proxy_http_version", "proxy-http-version", ""),
    ("proxy_cookie_domain", "proxy-cookie-domain", ""),
    ("proxy_cookie_path", "proxy-cookie-path", ""),
    (
        "proxy_next_upstream_timeout",
        "proxy-next-upstream-timeout",
        "",
    ),
    ("proxy_next_upstream_tries", "proxy-next-upstream-tries", ""),
];

/// Where a location's requests go.
struct Backend {
    /// The group, or the variable that has its name.
    group: Option<String>,
    /// The name in logs.
    shown: String,
    /// The name of the canary in logs, or a variable.
    alternative: String,
    is_own_default: bool,
    is_general_default: bool,
}

impl Renderer<'_> {
    /// Writes a location. What must stand beside it goes to `beside`.
    pub(super) fn location(
        &mut self,
        location: &Location,
        around: &Surroundings,
        beside: &mut Text,
    ) -> Text {
        let mut inside = Text::inside_of(3);
        let backend = self.backend(location);
        self.variables(&mut inside, location, &backend);
        match location.tenant.clone() {
            Some(tenant) => {
                if tenant.annotations.closed.is_some() {
                    inside.directive("return 503");
                } else {
                    self.tenants(&mut inside, location, &tenant, around, &backend, beside);
                }
            }
            None => {
                if !self.settings.flag("enable-access-log-for-default-backend") {
                    inside.directive("access_log off");
                }
                self.administrators(&mut inside, "location-snippet");
                match &backend.group {
                    Some(group) => inside.directive(format!("proxy_pass http://{group}")),
                    None => inside.directive("return 404"),
                }
            }
        }
        let mut whole = Text::inside_of(2);
        whole.around(&format!("location {}", matcher(location, around)), inside);
        whole
    }

    fn variables(&self, text: &mut Text, location: &Location, backend: &Backend) {
        let tenant = location.tenant.as_ref();
        let port = location.port.as_ref();
        let namespace = tenant
            .map(|tenant| tenant.namespace.as_str())
            .unwrap_or_default();
        let name = tenant
            .map(|tenant| tenant.name.as_str())
            .unwrap_or_default();
        for (variable, value) in [
            ("namespace", namespace),
            ("ingress_name", name),
            (
                "service_name",
                port.map(|port| port.service.as_str()).unwrap_or_default(),
            ),
            (
                "service_port",
                port.map(|port| port.port.as_str()).unwrap_or_default(),
            ),
            ("location_path", &location.written_path),
            ("proxy_upstream_name", &backend.shown),
        ] {
            text.directive(format!("set ${variable} {}", literal(value)));
        }
        let alternative = &backend.alternative;
        text.directive(format!(
            "set $proxy_alternative_upstream_name {}",
            quoted(alternative)
        ));
    }

    /// What a tenant's location does with a request, in the order of the phases.
    fn tenants(
        &mut self,
        text: &mut Text,
        location: &Location,
        tenant: &Rc<Tenant>,
        around: &Surroundings,
        backend: &Backend,
        beside: &mut Text,
    ) {
        let annotations = &tenant.annotations;
        let redirect = self.redirect(tenant);
        if redirect.is_none() {
            self.to_https(text, location, tenant, around);
        }
        self.logs_of(text, tenant);
        self.networks(text, tenant);
        self.cross_origin(text, tenant);
        if !self.users(text, tenant) {
            text.directive("return 503");
            return;
        }
        let auth_fields = self.external_auth(text, location, tenant, around, beside);
        self.limits(text, tenant);
        self.mirror(text, tenant, beside);
        let own_default = self.own_default(location);
        self.errors(text, tenant, own_default.as_ref());
        self.own_pass(text, tenant);
        self.request_fields(text, location, tenant, around, &auth_fields, backend);
        if let Some(snippet) = annotations.text("configuration-snippet") {
            text.owned(&tenant.subject, |text| text.verbatim(snippet));
        }
        self.administrators(text, "location-snippet");
        self.custom_headers(text, tenant);
        if let Some(value) = annotations.text("satisfy") {
            text.directive(format!("satisfy {value}"));
        }
        if annotations.flag("relative-redirects") {
            text.directive("absolute_redirect off");
        }
        if let Some((code, target)) = redirect {
            text.directive(format!("return {code} {}", quoted(&target)));
        }
        match &backend.group {
            Some(group) => self.pass(text, location, tenant, group, backend.is_general_default),
            None if location.port.is_none() => text.directive("return 404"),
            None => text.directive("return 503"),
        }
    }

    /// The group for a location: the rule's, or a default one if that has no server.
    fn backend(&mut self, location: &Location) -> Backend {
        let own_default = self.own_default(location);
        let general = |renderer: &mut Self| Backend {
            group: renderer.default_group(),
            shown: "upstream-default-backend".to_owned(),
            alternative: String::new(),
            is_own_default: false,
            is_general_default: true,
        };
        let Some(port) = &location.port else {
            return general(self);
        };
        let main = self.group(port, location, location.tenant.as_ref());
        let is_canary = location.canary.is_some();
        let chosen = match &location.canary {
            Some(_) => self.canary(location, main.as_deref()),
            None => None,
        };
        if let (true, Some((group, alternative))) = (is_canary, chosen) {
            return Backend {
                group: Some(group),
                shown: port.shown(),
                alternative,
                is_own_default: false,
                is_general_default: false,
            };
        }
        match (main, own_default) {
            (None, Some(own)) => Backend {
                group: self.plain_group(&own),
                shown: format!("custom-default-backend-{}-{}", own.namespace, own.service),
                alternative: String::new(),
                is_own_default: true,
                is_general_default: false,
            },
            (group, _) => Backend {
                group,
                shown: port.shown(),
                alternative: String::new(),
                is_own_default: false,
                is_general_default: location.tenant.is_none(),
            },
        }
    }

    /// The group of the administrator's default backend.
    pub(super) fn default_group(&mut self) -> Option<String> {
        let named = self.options.default_backend.clone()?;
        let (namespace, name) = named.split_once('/')?;
        let port = crate::endpoints::first_port(self.objects, namespace, name)?;
        self.plain_group(&port)
    }

    /// The group of a port without an Ingress' wishes.
    pub(super) fn plain_group(&mut self, port: &Port) -> Option<String> {
        let location = Location {
            path: "/".to_owned(),
            written_path: "/".to_owned(),
            matched: Match::Prefix,
            tenant: None,
            port: Some(port.clone()),
            canary: None,
            is_default: true,
        };
        self.group(port, &location, None)
    }

    /// A redirect in place of a backend: the code and the target.
    fn redirect(&mut self, tenant: &Tenant) -> Option<(u32, String)> {
        let annotations = &tenant.annotations;
        let code = |name: &str, general: u32| {
            let written = annotations.number(name);
            written
                .filter(|code| (300..=308).contains(code))
                .unwrap_or(general)
        };
        if let Some(target) = annotations.text("temporal-redirect") {
            return Some((code("temporal-redirect-code", 302), target.to_owned()));
        }
        let target = annotations.text("permanent-redirect")?;
        Some((code("permanent-redirect-code", 301), target.to_owned()))
    }

    /// Sends clients of plain HTTP to HTTPS.
    fn to_https(
        &self,
        text: &mut Text,
        location: &Location,
        tenant: &Tenant,
        around: &Surroundings,
    ) {
        let annotations = &tenant.annotations;
        let wanted = |name: &str| {
            annotations
                .written_flag(name)
                .unwrap_or_else(|| self.settings.flag(name))
        };
        let is_wanted = wanted("force-ssl-redirect") || (wanted("ssl-redirect") && around.has_tls);
        if !is_wanted || self.is_listed("no-tls-redirect-locations", location) {
            return;
        }
        let path = if wanted("preserve-trailing-slash") {
            "$request_uri"
        } else {
            "$ingress_own_bare_uri"
        };
        let port = if wanted("use-port-in-redirects") {
            format!(":{}", self.options.https_port)
        } else {
            String::new()
        };
        let code = self.settings.text("http-redirect-code");
        text.block("if ($pass_access_scheme = http)", |text| {
            let target = format!("https://$ingress_own_redirect_host{port}{path}");
            text.directive(format!("return {code} {}", quoted(&target)));
        });
    }

    /// Whether a list of path prefixes has a location's path.
    pub(super) fn is_listed(&self, key: &str, location: &Location) -> bool {
        let prefixes = self.settings.list(key);
        prefixes
            .iter()
            .any(|prefix| location.written_path.starts_with(prefix))
    }

    fn logs_of(&self, text: &mut Text, tenant: &Tenant) {
        let annotations = &tenant.annotations;
        if annotations.written_flag("enable-access-log") == Some(false) {
            text.directive("access_log off");
        }
        if annotations.flag("enable-rewrite-log") {
            text.directive("rewrite_log on");
        }
        if let Some(on) = annotations.written_flag("enable-opentelemetry") {
            let value = if on { self.sampler() } else { "off" };
            let has_exporter = self.settings.some("otlp-collector-host").is_some();
            if has_exporter {
                text.directive(format!("otel_trace {value}"));
            }
        }
        if let Some(trusts) = annotations.written_flag("opentelemetry-trust-incoming-span") {
            let value = if trusts { "propagate" } else { "inject" };
            text.directive(format!("otel_trace_context {value}"));
        }
        if let Some(name) = annotations.text("opentelemetry-operation-name") {
            text.directive(format!("otel_span_name {}", quoted(name)));
        }
    }

    /// What an Ingress says about passing.
    fn own_pass(&self, text: &mut Text, tenant: &Tenant) {
        let annotations = &tenant.annotations;
        for (directive, name, unit) in PASS {
            if let Some(value) = annotations.text(name) {
                text.directive(format!("{directive} {value}{unit}"));
            }
        }
        let number = annotations.text("proxy-buffers-number");
        let size = annotations.text("proxy-buffer-size");
        if number.is_some() || size.is_some() {
            let number = number.unwrap_or_else(|| self.settings.text("proxy-buffers-number"));
            let size = size.unwrap_or_else(|| self.settings.text("proxy-buffer-size"));
            text.directive(format!("proxy_buffers {number} {size}"));
        }
        if let Some(size) = annotations.text("client-body-buffer-size") {
            text.directive(format!("client_body_buffer_size {size}"));
        }
        if let Some(conditions) = annotations.text("proxy-next-upstream") {
            let conditions = self.next_upstream(conditions);
            text.directive(format!("proxy_next_upstream {conditions}"));
        }
    }

    /// Writes the fields of requests, unless those of `http` are enough.
    fn request_fields(
        &mut self,
        text: &mut Text,
        location: &Location,
        tenant: &Tenant,
        around: &Surroundings,
        auth_fields: &[(String, String)],
        backend: &Backend,
    ) {
        let annotations = &tenant.annotations;
        let protocol = if is_grpc(tenant) { "grpc" } else { "proxy" };
        let mut own: Vec<(String, String)> = auth_fields.to_vec();
        let mut add = |name: &str, value: &str| own.push((name.to_owned(), value.to_owned()));
        if let Some(passes) = around.client_certificates {
            if passes {
                add("ssl-client-cert", "$ssl_client_escaped_cert");
            }
            add("ssl-client-verify", "$ssl_client_verify");
            add("ssl-client-subject-dn", "$ssl_client_s_dn");
            add("ssl-client-issuer-dn", "$ssl_client_i_dn");
        }
        if annotations.text("auth-secret").is_some() {
            add("Authorization", "\"\"");
        }
        if let (Some(prefix), true) = (annotations.text("x-forwarded-prefix"), rewrites(location)) {
            add("X-Forwarded-Prefix", &quoted(prefix));
        }
        if backend.is_own_default {
            add("X-Code", "503");
            for (name, value) in ERROR_FIELDS
                .iter()
                .filter(|(name, _)| name.starts_with("X-"))
            {
                add(name, value);
            }
        }
        let own_host = annotations.text("upstream-vhost");
        let connection = annotations.text("connection-proxy-header");
        let snippets = [
            annotations
                .text("configuration-snippet")
                .unwrap_or_default(),
            self.settings.text("location-snippet"),
        ];
        let is_set_by_snippet = snippets
            .iter()
            .any(|snippet| snippet.contains("_set_header"));
        let is_own = own_host.is_some() || connection.is_some() || !own.is_empty();
        if !is_own && !is_set_by_snippet && !around.sets_fields {
            return;
        }
        let host = own_host.map_or("$best_http_host".to_owned(), quoted);
        let connection = connection.map_or("$connection_upgrade".to_owned(), quoted);
        self.fields(text, protocol, &host, &connection);
        for (name, value) in own {
            text.directive(format!("{protocol}_set_header {name} {value}"));
        }
    }

    fn errors(&mut self, text: &mut Text, tenant: &Tenant, own_default: Option<&Port>) {
        let annotations = &tenant.annotations;
        let codes = annotations.list("custom-http-errors");
        let is_off = annotations.flag("disable-proxy-intercept-errors");
        if !codes.is_empty() && !is_off {
            text.directive("proxy_intercept_errors on");
        }
        if codes.is_empty() && is_off {
            text.directive("proxy_intercept_errors off");
        }
        let name = own_default.map_or("upstream-default-backend".to_owned(), |port| {
            format!("custom-default-backend-{}-{}", port.namespace, port.service)
        });
        for code in codes {
            text.directive(format!("error_page {code} = @custom_{name}_{code}"));
        }
    }

    fn custom_headers(&mut self, text: &mut Text, tenant: &Tenant) {
        let Some(named) = tenant.annotations.text("custom-headers") else {
            return;
        };
        let entries = self.secret_name(&tenant.namespace, named);
        let entries =
            entries.and_then(|(namespace, name)| self.entries(&format!("{namespace}/{name}")));
        let allowed = self.settings.list("global-allowed-response-headers");
        let entries = entries.and_then(|entries| {
            let strange = entries.iter().find(|(name, _)| {
                !allowed
                    .iter()
                    .any(|allowed| allowed.eq_ignore_ascii_case(name))
            });
            match strange {
                None => Ok(entries),
                Some((name, _)) => Err(format!("{name} is not in global-allowed-response-headers")),
            }
        });
        match entries {
            Ok(entries) => {
                for (name, value) in entries {
                    let field = literal(&format!("{name}: {value}"));
                    text.directive(format!("more_set_headers {field}"));
                }
            }
            Err(error) => {
                self.find_other(
                    &tenant.subject,
                    Level::LeftOut,
                    format!("custom-headers: {error}"),
                );
            }
        }
    }

    /// Passes requests on.
    fn pass(
        &mut self,
        text: &mut Text,
        location: &Location,
        tenant: &Tenant,
        group: &str,
        is_general_default: bool,
    ) {
        let annotations = &tenant.annotations;
        let target = annotations.text("rewrite-target");
        if let Some(target) = target.filter(|target| *target != location.written_path) {
            let pattern = quoted(&format!("(?i){}", location.path));
            text.directive(format!("rewrite {pattern} {} break", quoted(target)));
        }
        let protocol = annotations.text("backend-protocol").unwrap_or("HTTP");
        let protocol = if is_general_default {
            "HTTP".to_owned()
        } else {
            protocol.to_ascii_uppercase()
        };
        if matches!(protocol.as_str(), "HTTPS" | "AUTO_HTTP" | "GRPCS") {
            let family = if protocol == "GRPCS" { "grpc" } else { "proxy" };
            if !self.upstream_tls(text, tenant, family) {
                text.directive("return 503");
                return;
            }
        }
        match protocol.as_str() {
            "HTTPS" => text.directive(format!("proxy_pass https://{group}")),
            "AUTO_HTTP" => text.directive(format!("proxy_pass $scheme://{group}")),
            "GRPC" => text.directive(format!("grpc_pass grpc://{group}")),
            "GRPCS" => text.directive(format!("grpc_pass grpcs://{group}")),
            "FCGI" => self.fastcgi(text, tenant, group),
            _ => text.directive(format!("proxy_pass http://{group}")),
        }
        if matches!(protocol.as_str(), "HTTP" | "HTTPS" | "AUTO_HTTP") {
            let from = annotations.text("proxy-redirect-from");
            let from = from.unwrap_or_else(|| self.settings.text("proxy-redirect-from"));
            let to = annotations.text("proxy-redirect-to");
            let to = to.unwrap_or_else(|| self.settings.text("proxy-redirect-to"));
            match (from, to) {
                ("off" | "", _) => text.directive("proxy_redirect off"),
                ("default", _) if group.starts_with('$') => {}
                ("default", _) => text.directive("proxy_redirect default"),
                (_, "off" | "") => {}
                (from, to) => {
                    text.directive(format!("proxy_redirect {} {}", quoted(from), quoted(to)));
                }
            }
        }
    }

    fn fastcgi(&mut self, text: &mut Text, tenant: &Tenant, group: &str) {
        let annotations = &tenant.annotations;
        for (name, value) in FASTCGI {
            text.directive(format!("fastcgi_param {name} {value}"));
        }
        if let Some(index) = annotations.text("fastcgi-index") {
            text.directive(format!("fastcgi_index {}", quoted(index)));
        }
        if let Some(named) = annotations.text("fastcgi-params-configmap") {
            let entries = self.secret_name(&tenant.namespace, named);
            let entries =
                entries.and_then(|(namespace, name)| self.entries(&format!("{namespace}/{name}")));
            match entries {
                Ok(entries) => {
                    for (name, value) in entries {
                        text.directive(format!("fastcgi_param {name} {}", quoted(&value)));
                    }
                }
                Err(error) => {
                    let error = format!("fastcgi-params-configmap: {error}");
                    self.find_other(&tenant.subject, Level::LeftOut, error);
                }
            }
        }
        text.directive(format!("fastcgi_pass {group}"));
    }
}

/// The parameters of a FastCGI request, as in nginx's own file of them.
const FASTCGI: &[(&str, &str)] = &[
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("HTTPS", "$https if_not_empty"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
];

/// How a location is matched.
fn matcher(location: &Location, around: &Surroundings) -> String {
    match (around.are_patterns, location.matched) {
        (true, _) => format!("~* {}", quoted(&format!("^{}", location.path))),
        (false, Match::Exact) => format!("= {}", quoted(&location.path)),
        (false, _) => quoted(&location.path),
    }
}

fn is_grpc(tenant: &Tenant) -> bool {
    let protocol = tenant
        .annotations
        .text("backend-protocol")
        .unwrap_or_default();
    matches!(protocol.to_ascii_uppercase().as_str(), "GRPC" | "GRPCS")
}

fn rewrites(location: &Location) -> bool {
    let tenant = location.tenant.as_ref();
    let target = tenant.and_then(|tenant| tenant.annotations.text("rewrite-target"));
    target.is_some_and(|target| target != location.written_path)
}
