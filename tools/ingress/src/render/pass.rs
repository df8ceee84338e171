//! What is the same for all that is passed on: the fields of requests, and the variables in them.

use super::Renderer;
use crate::text::{Text, quoted};

/// The fields of every request to an upstream server, but `Host` and `Connection`.
const FIELDS: &[(&str, &str)] = &[
    ("X-Request-ID", "$req_id"),
    ("X-Real-IP", "$remote_addr"),
    ("X-Forwarded-Host", "$best_http_host"),
    ("X-Forwarded-Port", "$pass_port"),
    ("X-Forwarded-Proto", "$pass_access_scheme"),
    ("X-Forwarded-Scheme", "$pass_access_scheme"),
    ("X-Scheme", "$pass_access_scheme"),
    ("Upgrade", "$http_upgrade"),
    ("Proxy", "\"\""),
];

/// The protocols whose requests get fields: the beginnings of their directives.
const PROTOCOLS: &[&str] = &["proxy", "grpc"];

impl Renderer<'_> {
    /// The variables that snippets and logs use.
    pub(super) fn maps(&self, text: &mut Text) {
        let settings = self.settings;
        let trusts = settings.flag("use-forwarded-headers");
        let is_kept = settings.number("upstream-keepalive-connections") > 0;
        text.block("map $http_upgrade $connection_upgrade", |text| {
            text.directive("default upgrade");
            text.directive(if is_kept { "\"\" \"\"" } else { "\"\" close" });
        });
        text.block("map $http_x_request_id $req_id", |text| {
            text.directive("default $http_x_request_id");
            if settings.flag("generate-request-id") {
                text.directive("\"\" $request_id");
            }
        });
        text.block("geo $literal_dollar", |text| {
            text.directive("default \"$\"");
        });
        text.block("map $http_host $ingress_own_host", |text| {
            text.directive("default $http_host");
            text.directive("\"\" $host");
        });
        trusted(
            text,
            trusts,
            "$http_x_forwarded_proto",
            "$ingress_own_scheme",
            "$scheme",
        );
        trusted(
            text,
            trusts,
            "$http_x_forwarded_port",
            "$pass_server_port",
            "$server_port",
        );
        if trusts {
            text.block("map $http_x_forwarded_host $best_http_host", |text| {
                text.directive("\"\" $ingress_own_host");
                text.directive(r#""~^(?<ingress_own_first>[^,]+)" $ingress_own_first"#);
                text.directive("default $ingress_own_host");
            });
        } else {
            text.block("map $ingress_own_host $best_http_host", |text| {
                text.directive("default $ingress_own_host");
            });
        }
        let secure_port = if settings.flag("use-proxy-protocol") {
            "$proxy_protocol_server_port"
        } else {
            "\"\""
        };
        text.block(format!("map {secure_port} $pass_access_scheme"), |text| {
            text.directive("443 https");
            text.directive("default $ingress_own_scheme");
        });
        self.ports(text);
        text.block("map $best_http_host $ingress_own_redirect_host", |text| {
            text.directive(r#""~^(?<ingress_own_name>\[.+\]|[^:]+):\d+$" $ingress_own_name"#);
            text.directive("default $best_http_host");
        });
        text.block("map $request_uri $ingress_own_bare_uri", |text| {
            text.directive(r#""~^(?<ingress_own_path>.*)/$" $ingress_own_path"#);
            text.directive("default $request_uri");
        });
        self.client_addresses(text);
    }

    /// The ports that clients know, by those that the server listens on.
    fn ports(&self, text: &mut Text) {
        text.block("map $pass_server_port $pass_port", |text| {
            text.directive(format!("{} 443", self.options.https_port));
            for (port, known) in &self.gateway_ports {
                if *port != self.options.https_port && port != known {
                    text.directive(format!("{port} {known}"));
                }
            }
            text.directive("default $pass_server_port");
        });
    }

    /// Where a client's address comes from.
    fn client_addresses(&self, text: &mut Text) {
        let settings = self.settings;
        let (forwarded, proxy) = (
            settings.flag("use-forwarded-headers"),
            settings.flag("use-proxy-protocol"),
        );
        if !forwarded && !proxy && !settings.flag("enable-real-ip") {
            if self.options.has_passthrough {
                text.directive("real_ip_header proxy_protocol");
                text.directive("set_real_ip_from 127.0.0.1");
            }
            return;
        }
        let header = match (forwarded, proxy) {
            (true, true) => settings.text("forwarded-for-proxy-protocol-header"),
            (false, true) => "proxy_protocol",
            _ => settings.text("forwarded-for-header"),
        };
        text.directive(format!("real_ip_header {header}"));
        text.directive("real_ip_recursive on");
        for network in settings.list("proxy-real-ip-cidr") {
            text.directive(format!("set_real_ip_from {network}"));
        }
        let source = if proxy {
            "$proxy_protocol_addr"
        } else {
            "$realip_remote_addr"
        };
        text.block("map $http_x_forwarded_for $full_x_forwarded_for", |text| {
            text.directive(format!("default \"$http_x_forwarded_for, {source}\""));
            text.directive(format!("\"\" {source}"));
        });
        if forwarded && proxy {
            text.block("geo $proxy_protocol_addr $ingress_own_is_trusted", |text| {
                text.directive("default 0");
                for network in settings.list("proxy-real-ip-cidr") {
                    text.directive(format!("{network} 1"));
                }
            });
            let written = variable_of(settings.text("forwarded-for-header"));
            text.block(
                "map $ingress_own_is_trusted $ingress_own_forwarded",
                |text| {
                    text.directive("default $proxy_protocol_addr");
                    text.directive(format!("1 {written}"));
                },
            );
            let field = format!("{header}: $ingress_own_forwarded");
            text.directive(format!("more_set_input_headers {}", quoted(&field)));
        }
    }

    /// What `http` says about passing, for locations that say nothing of their own.
    pub(super) fn pass_defaults(&mut self, text: &mut Text) {
        for protocol in PROTOCOLS {
            self.fields(text, protocol, "$best_http_host", "$connection_upgrade");
        }
        for (directive, key, unit) in super::location::PASS {
            if let Some(value) = self.settings.some(key) {
                text.directive(format!("{directive} {value}{unit}"));
            }
        }
        let buffers = format!(
            "proxy_buffers {} {}",
            self.settings.text("proxy-buffers-number"),
            self.settings.text("proxy-buffer-size")
        );
        text.directive(buffers);
        let next = self.next_upstream(self.settings.text("proxy-next-upstream"));
        text.directive(format!("proxy_next_upstream {next}"));
        text.directive(format!("grpc_next_upstream {next}"));
        self.http_errors(text);
    }

    fn http_errors(&mut self, text: &mut Text) {
        let codes = self.settings.list("custom-http-errors");
        if codes.is_empty() {
            return;
        }
        if !self.settings.flag("disable-proxy-intercept-errors") {
            text.directive("proxy_intercept_errors on");
        }
        for code in codes {
            text.directive(format!(
                "error_page {code} = @custom_upstream-default-backend_{code}"
            ));
        }
    }

    /// Writes the fields of requests.
    pub(super) fn fields(&mut self, text: &mut Text, protocol: &str, host: &str, connection: &str) {
        let settings = self.settings;
        let mut field = |name: &str, value: &str| {
            text.directive(format!("{protocol}_set_header {name} {value}"));
        };
        field("Host", host);
        for (name, value) in FIELDS {
            let is_upgrade = protocol == "grpc" && *name == "Upgrade";
            if !is_upgrade {
                field(name, value);
            }
        }
        if protocol != "grpc" {
            field("Connection", connection);
        }
        let is_full = settings.flag("compute-full-forwarded-for");
        if settings.flag("use-forwarded-headers") && is_full {
            field("X-Forwarded-For", "$full_x_forwarded_for");
        } else {
            field("X-Forwarded-For", "$remote_addr");
        }
        if settings.flag("proxy-add-original-uri-header") {
            field("X-Original-URI", "$request_uri");
        }
        let written = variable_of(settings.text("forwarded-for-header"));
        field("X-Original-Forwarded-For", &written);
        let written = variable_of(settings.text("forwarded-host-header"));
        field("X-Original-Forwarded-Host", &written);
        for (name, value) in self.config_map_of("proxy-set-headers") {
            text.directive(format!("{protocol}_set_header {name} {}", quoted(&value)));
        }
    }

    /// The conditions of a retry, with `non_idempotent` if the administrator has it on.
    pub(super) fn next_upstream(&self, conditions: &str) -> String {
        let mut words: Vec<&str> = conditions.split([' ', ',']).collect();
        words.retain(|word| !word.is_empty());
        if self.settings.flag("retry-non-idempotent") && !words.contains(&"non_idempotent") {
            words.push("non_idempotent");
        }
        words.join(" ")
    }
}

/// The variable of a request's field.
pub(super) fn variable_of(field: &str) -> String {
    format!("$http_{}", field.to_ascii_lowercase().replace('-', "_"))
}

/// A variable that is a field of the request if fields are trusted and it is there.
fn trusted(text: &mut Text, trusts: bool, field: &str, name: &str, otherwise: &str) {
    let source = if trusts { field } else { "\"\"" };
    text.block(format!("map {source} {name}"), |text| {
        if trusts {
            text.directive(format!("default {field}"));
            text.directive(format!("\"\" {otherwise}"));
        } else {
            text.directive(format!("default {otherwise}"));
        }
    });
}
