//! The main context and what `http` has for all servers.

use super::{Level, Renderer};
use crate::findings::Subject;
use crate::snippets;
use crate::text::{Text, quoted};

/// Directives of `http` that a key of the ConfigMap sets, with what stands behind the value.
const BY_KEY: &[(&str, &str, &str)] = &[
    ("keepalive_timeout", "keep-alive", "s"),
    ("keepalive_requests", "keep-alive-requests", ""),
    ("client_header_buffer_size", "client-header-buffer-size", ""),
    ("client_header_timeout", "client-header-timeout", "s"),
    (
        "large_client_header_buffers",
        "large-client-header-buffers",
        "",
    ),
    ("client_body_buffer_size", "client-body-buffer-size", ""),
    ("client_body_timeout", "client-body-timeout", "s"),
    ("http2_max_field_size", "http2-max-field-size", ""),
    ("http2_max_header_size", "http2-max-header-size", ""),
    (
        "http2_max_concurrent_streams",
        "http2-max-concurrent-streams",
        "",
    ),
    (
        "server_names_hash_max_size",
        "server-name-hash-max-size",
        "",
    ),
    (
        "server_names_hash_bucket_size",
        "server-name-hash-bucket-size",
        "",
    ),
    ("map_hash_bucket_size", "map-hash-bucket-size", ""),
    (
        "proxy_headers_hash_max_size",
        "proxy-headers-hash-max-size",
        "",
    ),
    (
        "proxy_headers_hash_bucket_size",
        "proxy-headers-hash-bucket-size",
        "",
    ),
    (
        "variables_hash_bucket_size",
        "variables-hash-bucket-size",
        "",
    ),
    ("variables_hash_max_size", "variables-hash-max-size", ""),
    ("limit_req_status", "limit-req-status-code", ""),
    ("limit_conn_status", "limit-conn-status-code", ""),
    ("default_type", "default-type", ""),
    ("ssl_protocols", "ssl-protocols", ""),
    ("ssl_buffer_size", "ssl-buffer-size", ""),
    ("ssl_ciphers", "ssl-ciphers", ""),
    ("ssl_ecdh_curve", "ssl-ecdh-curve", ""),
];

/// Switches of `http` that a key sets.
const SWITCHES: &[(&str, &str)] = &[
    ("underscores_in_headers", "enable-underscores-in-headers"),
    ("ignore_invalid_headers", "ignore-invalid-headers"),
    ("server_tokens", "server-tokens"),
    ("ssl_early_data", "ssl-early-data"),
    ("ssl_session_tickets", "ssl-session-tickets"),
    ("aio_write", "enable-aio-write"),
];

/// What `http` has in any case.
const FIXED: &[&str] = &[
    "aio threads",
    "tcp_nopush on",
    "tcp_nodelay on",
    "log_subrequest on",
    "reset_timedout_connection on",
    "types_hash_max_size 2048",
    "uninitialized_variable_warn off",
    "server_name_in_redirect off",
    "port_in_redirect off",
    "proxy_ssl_session_reuse on",
];

impl Renderer<'_> {
    /// Writes everything but `stream`.
    pub(super) fn main(&mut self, text: &mut Text, servers: Text) -> Result<(), String> {
        text.comment("Written by turnpike-ingress; changes are lost.");
        let settings = self.settings;
        if let Some(folder) = &self.options.control {
            let path = |name: &str| quoted(&folder.join(name).display().to_string());
            text.directive(format!("control {}", path("control")));
            text.directive(format!("pid {}", path("pid")));
        }
        text.directive(format!(
            "worker_processes {}",
            settings.text("worker-processes")
        ));
        if let Some(affinity) = settings.some("worker-cpu-affinity") {
            text.directive(format!("worker_cpu_affinity {affinity}"));
        }
        if settings.number("max-worker-open-files") > 0 {
            let files = settings.text("max-worker-open-files");
            text.directive(format!("worker_rlimit_nofile {files}"));
        }
        let end = settings.text("worker-shutdown-timeout");
        text.directive(format!("worker_shutdown_timeout {end}"));
        let log = quoted(settings.text("error-log-path"));
        let level = settings.text("error-log-level");
        if settings.flag("enable-syslog") {
            text.directive(format!("error_log {} {level}", self.syslog()));
        } else {
            text.directive(format!("error_log {log} {level}"));
        }
        self.administrators(text, "main-snippet");
        text.block("events", |text| {
            let accepts = if settings.flag("enable-multi-accept") {
                "on"
            } else {
                "off"
            };
            text.directive(format!("multi_accept {accepts}"));
            text.directive(format!(
                "worker_connections {}",
                settings.text("max-worker-connections")
            ));
            for client in settings.list("debug-connections") {
                text.directive(format!("debug_connection {}", quoted(client)));
            }
        });
        let fake = self.default_certificate()?;
        let mut inside = Text::inside();
        self.general(&mut inside, &fake);
        self.logs(&mut inside);
        self.maps(&mut inside);
        self.compression(&mut inside);
        self.headers(&mut inside);
        self.pass_defaults(&mut inside);
        self.blocks(&mut inside);
        self.telemetry(&mut inside);
        self.administrators(&mut inside, "http-snippet");
        self.write_groups(&mut inside);
        inside.append(std::mem::take(&mut self.shared));
        inside.append(servers);
        self.state_server(&mut inside);
        text.around("http", inside);
        Ok(())
    }

    /// The file of the certificate for servers without one.
    fn default_certificate(&mut self) -> Result<String, String> {
        let named = self.options.default_certificate.clone();
        if let Some((namespace, name)) = named.as_deref().and_then(|text| text.split_once('/')) {
            let subject = crate::certificates::subject(namespace, name);
            let files = if self.without.objects.contains(&subject) {
                Err("it cannot be used".to_owned())
            } else {
                self.files.of_secret(self.objects, namespace, name)
            };
            match files.map(|files| files.pair) {
                Ok(Some(pair)) => return Ok(pair.display().to_string()),
                Ok(None) => self.find(&subject, Level::Note, "it has no certificate and key"),
                Err(text) => self.find(&subject, Level::Note, text),
            }
        }
        Ok(self.files.fake()?.display().to_string())
    }

    fn general(&mut self, text: &mut Text, certificate: &str) {
        let settings = self.settings;
        for line in FIXED {
            text.directive(line);
        }
        for (directive, key, unit) in BY_KEY {
            if let Some(value) = settings.some(key) {
                text.directive(format!("{directive} {value}{unit}"));
            }
        }
        for (directive, key) in SWITCHES {
            let value = if settings.flag(key) { "on" } else { "off" };
            text.directive(format!("{directive} {value}"));
        }
        text.directive("ssl_prefer_server_ciphers on");
        if settings.flag("ssl-session-cache") {
            let size = settings.text("ssl-session-cache-size");
            text.directive(format!("ssl_session_cache shared:SSL:{size}"));
            text.directive(format!(
                "ssl_session_timeout {}",
                settings.text("ssl-session-timeout")
            ));
        }
        let kilobytes = settings.number("grpc-buffer-size-kb");
        if kilobytes > 0 {
            text.directive(format!("grpc_buffer_size {kilobytes}k"));
        }
        if settings.flag("use-http2") {
            text.directive("http2 on");
        }
        if !settings.flag("server-tokens") {
            text.directive("more_clear_headers Server");
        }
        if settings.flag("allow-backend-server-header") {
            text.directive("proxy_pass_header Server");
        }
        if settings.flag("relative-redirects") {
            text.directive("absolute_redirect off");
        }
        let folder = self.options.temporary.display();
        for name in ["client_body", "proxy", "fastcgi"] {
            text.directive(format!("{name}_temp_path {folder}/turnpike-{name}"));
        }
        if !self.options.resolvers.is_empty() {
            let ipv6 = if settings.flag("disable-ipv6-dns") {
                " ipv6=off"
            } else {
                ""
            };
            let resolvers = self.options.resolvers.join(" ");
            text.directive(format!("resolver {resolvers} valid=30s{ipv6}"));
        }
        text.directive(format!("ssl_certificate {}", quoted(certificate)));
        text.directive(format!("ssl_certificate_key {}", quoted(certificate)));
        self.ssl_files(text);
    }

    /// The files that keys of the ConfigMap name by their Secrets or have in them.
    fn ssl_files(&mut self, text: &mut Text) {
        if let Some(key) = self.settings.some("ssl-session-ticket-key") {
            let subject = self.config_map();
            match self.files.ticket_key(key) {
                Some(path) => {
                    text.directive(format!("ssl_session_ticket_key {}", quoted(&path)));
                }
                None => {
                    let wrong =
                        "key ssl-session-ticket-key: the value is not 48 or 80 bytes in base64";
                    self.find(&subject, Level::LeftOut, wrong);
                }
            }
        }
        if self.settings.flag("enable-ocsp") {
            text.directive("ssl_stapling on");
        }
    }

    fn logs(&self, text: &mut Text) {
        let settings = self.settings;
        let escape = match (
            settings.flag("log-format-escape-none"),
            settings.flag("log-format-escape-json"),
        ) {
            (true, _) => "escape=none ",
            (false, true) => "escape=json ",
            (false, false) => "",
        };
        let format = quoted(settings.text("log-format-upstream"));
        text.directive(format!("log_format upstreaminfo {escape}{format}"));
        text.block("map $request_uri $loggable", |text| {
            for address in settings.list("skip-access-log-urls") {
                text.directive(format!("{} 0", quoted(address)));
            }
            text.directive("default 1");
        });
        if settings.flag("disable-access-log") || settings.flag("disable-http-access-log") {
            text.directive("access_log off");
            return;
        }
        let path = settings.some("http-access-log-path");
        let path = path.unwrap_or_else(|| settings.text("access-log-path"));
        let target = if settings.flag("enable-syslog") {
            self.syslog()
        } else {
            quoted(path)
        };
        let parameters = settings.text("access-log-params");
        let line = format!("access_log {target} upstreaminfo {parameters} if=$loggable");
        text.directive(line.replace("  ", " "));
    }

    fn syslog(&self) -> String {
        let settings = self.settings;
        format!(
            "syslog:server={}:{}",
            settings.text("syslog-host"),
            settings.text("syslog-port")
        )
    }

    fn compression(&self, text: &mut Text) {
        let settings = self.settings;
        if settings.flag("enable-brotli") {
            text.directive("brotli on");
            text.directive(format!(
                "brotli_comp_level {}",
                settings.text("brotli-level")
            ));
            text.directive(format!(
                "brotli_min_length {}",
                settings.text("brotli-min-length")
            ));
            text.directive(format!("brotli_types {}", settings.text("brotli-types")));
        }
        if settings.flag("use-gzip") {
            text.directive("gzip on");
            text.directive("gzip_http_version 1.1");
            text.directive("gzip_proxied any");
            text.directive("gzip_vary on");
            text.directive(format!("gzip_comp_level {}", settings.text("gzip-level")));
            text.directive(format!(
                "gzip_min_length {}",
                settings.text("gzip-min-length")
            ));
            text.directive(format!("gzip_types {}", settings.text("gzip-types")));
            if let Some(browsers) = settings.some("gzip-disable") {
                text.directive(format!("gzip_disable {}", quoted(browsers)));
            }
        }
    }

    /// Fields that every response gets.
    fn headers(&mut self, text: &mut Text) {
        let settings = self.settings;
        if settings.flag("hsts") {
            let mut value = format!("max-age={}", settings.text("hsts-max-age"));
            if settings.flag("hsts-include-subdomains") {
                value.push_str("; includeSubDomains");
            }
            if settings.flag("hsts-preload") {
                value.push_str("; preload");
            }
            text.block("map $scheme $ingress_own_hsts", |text| {
                text.directive(format!("https {}", quoted(&value)));
                text.directive("default \"\"");
            });
            text.directive("more_set_headers \"Strict-Transport-Security: $ingress_own_hsts\"");
        }
        for (name, value) in self.config_map_of("add-headers") {
            text.directive(format!(
                "more_set_headers {}",
                quoted(&format!("{name}: {value}"))
            ));
        }
        for name in settings.list("hide-headers") {
            text.directive(format!("proxy_hide_header {name}"));
        }
    }

    /// Clients that are refused by all servers.
    fn blocks(&self, text: &mut Text) {
        let settings = self.settings;
        for network in settings.list("block-cidrs") {
            text.directive(format!("deny {network}"));
        }
        for (key, variable, subject) in [
            ("block-user-agents", "$block_ua", "$http_user_agent"),
            ("block-referers", "$block_ref", "$http_referer"),
        ] {
            let patterns = settings.list(key);
            if patterns.is_empty() {
                continue;
            }
            text.block(format!("map {subject} {variable}"), |text| {
                text.directive("default 0");
                for pattern in patterns {
                    text.directive(format!("{} 1", quoted(pattern)));
                }
            });
        }
    }

    fn telemetry(&self, text: &mut Text) {
        let settings = self.settings;
        let Some(host) = settings.some("otlp-collector-host") else {
            return;
        };
        text.block("otel_exporter", |text| {
            let port = settings.text("otlp-collector-port");
            text.directive(format!("endpoint {host}:{port}"));
            text.directive(format!(
                "batch_size {}",
                settings.text("otel-max-export-batch-size")
            ));
            let size = settings.number("otel-max-export-batch-size").max(1);
            let count = (settings.number("otel-max-queuesize") / size).max(1);
            text.directive(format!("batch_count {count}"));
            text.directive(format!(
                "interval {}ms",
                settings.text("otel-schedule-delay-millis")
            ));
        });
        text.directive(format!(
            "otel_service_name {}",
            quoted(settings.text("otel-service-name"))
        ));
        if let Some(name) = settings.some("opentelemetry-operation-name") {
            text.directive(format!("otel_span_name {}", quoted(name)));
        }
        if settings.flag("enable-opentelemetry") {
            let context = if settings.flag("opentelemetry-trust-incoming-span") {
                "propagate"
            } else {
                "inject"
            };
            text.directive(format!("otel_trace {}", self.sampler()));
            text.directive(format!("otel_trace_context {context}"));
        }
        let share = settings
            .text("otel-sampler-ratio")
            .parse()
            .unwrap_or(0.01_f64);
        text.block("split_clients $request_id $ingress_own_sampled", |text| {
            text.directive(format!("{:.2}% on", (share * 100.0).clamp(0.01, 99.99)));
            text.directive("* off");
        });
        text.block(
            "map $http_traceparent $ingress_own_parent_sampled",
            |text| {
                text.directive("\"~-01$\" on");
                text.directive("\"~-00$\" off");
                text.directive(format!("default {}", self.own_sampler()));
            },
        );
    }

    /// What decides whether a span is exported.
    pub(super) fn sampler(&self) -> &'static str {
        if self.settings.flag("otel-sampler-parent-based") {
            "$ingress_own_parent_sampled"
        } else {
            self.own_sampler()
        }
    }

    fn own_sampler(&self) -> &'static str {
        match self.settings.text("otel-sampler") {
            "AlwaysOff" => "off",
            "TraceIdRatioBased" => "$ingress_own_sampled",
            _ => "on",
        }
    }

    /// The server of the pod's probes and of the state for monitoring.
    fn state_server(&self, text: &mut Text) {
        text.block("server", |text| {
            text.directive(format!("listen 127.0.0.1:{}", self.options.status_port));
            text.directive("access_log off");
            text.directive("keepalive_timeout 0");
            text.block(
                format!("location {}", quoted(&self.options.health_path)),
                |text| {
                    text.directive("return 200");
                },
            );
            text.block("location /nginx_status", |text| {
                text.directive("stub_status");
            });
            text.block("location /", |text| text.directive("return 404"));
        });
    }

    /// Writes a snippet of the ConfigMap's.
    pub(super) fn administrators(&mut self, text: &mut Text, key: &str) {
        let Some(snippet) = self.settings.some(key) else {
            return;
        };
        let subject = self.config_map();
        match snippets::check_whole(snippet) {
            Ok(()) => text.owned(&subject, |text| text.verbatim(snippet)),
            Err(error) => self.find(&subject, Level::LeftOut, format!("key {key}: {error}")),
        }
    }

    /// The subject of the ConfigMap's findings.
    pub(super) fn config_map(&self) -> Subject {
        let named = self
            .options
            .config_map
            .as_deref()
            .and_then(|text| text.split_once('/'));
        let (namespace, name) = named.unwrap_or(("", "configuration"));
        Subject::new("ConfigMap", namespace, name)
    }

    /// The entries of the ConfigMap that a key names.
    pub(super) fn config_map_of(&mut self, key: &str) -> Vec<(String, String)> {
        let Some(named) = self.settings.some(key) else {
            return Vec::new();
        };
        match self.entries(named) {
            Ok(entries) => entries,
            Err(text) => {
                let subject = self.config_map();
                self.find(&subject, Level::LeftOut, format!("key {key}: {text}"));
                Vec::new()
            }
        }
    }

    /// The header fields of a ConfigMap that is named by `namespace/name`.
    ///
    /// # Errors
    /// It is missing, or has what is not a header field.
    pub(super) fn entries(&self, named: &str) -> Result<Vec<(String, String)>, String> {
        let (namespace, name) = named.split_once('/').unwrap_or(("default", named));
        let key = (namespace.to_owned(), name.to_owned());
        let config_map = self.objects.config_maps.get(&key);
        let config_map =
            config_map.ok_or_else(|| format!("there is no ConfigMap {namespace}/{name}"))?;
        let mut entries = Vec::new();
        for (field, value) in config_map.data.iter().flatten() {
            let is_name = !field.is_empty() && crate::values::only(field, "-_");
            if !is_name || value.chars().any(char::is_control) {
                return Err(format!(
                    "\"{}\" of ConfigMap {namespace}/{name} is not a header field",
                    field.escape_debug()
                ));
            }
            entries.push((field.clone(), value.clone()));
        }
        Ok(entries)
    }
}
