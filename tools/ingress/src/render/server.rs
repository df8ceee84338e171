//! A server: its names, sockets, certificates, and what holds for all its locations.

use std::collections::BTreeSet;

use super::{Level, Renderer};
use crate::rules::{CATCH_ALL, Location, Server, needs_patterns, other_name};
use crate::snippets;
use crate::text::{Text, literal, quoted};
use crate::values::split;

/// What locations need to know of their server.
pub(super) struct Surroundings {
    /// Whether all paths are regular expressions.
    pub(super) are_patterns: bool,
    /// Whether a TLS section is for the host.
    pub(super) has_tls: bool,
    /// Whether clients' certificates are looked at, and whether they are passed on.
    pub(super) client_certificates: Option<bool>,
    /// Whether fields that are set outside of locations are lost.
    pub(super) sets_fields: bool,
    pub(super) host: String,
}

impl Renderer<'_> {
    /// Writes a server with its locations.
    pub(super) fn server(&mut self, text: &mut Text, server: &Server) {
        if server.has_flag("from-to-www-redirect") {
            self.other_name(text, server);
        }
        let mut inside = Text::inside_of(2);
        let mut beside = Text::inside_of(2);
        inside.directive(format!("server_name {}", names(server)));
        self.listens(&mut inside, server.host == CATCH_ALL);
        self.refusals(&mut inside);
        if server.host == CATCH_ALL && self.settings.flag("ssl-reject-handshake") {
            inside.directive("ssl_reject_handshake on");
        }
        self.certificate(&mut inside, server);
        let surroundings = Surroundings {
            are_patterns: needs_patterns(server),
            has_tls: server.has_tls,
            client_certificates: self.client_certificates(&mut inside, server),
            sets_fields: self.server_snippets(&mut inside, server),
            host: server.host.clone(),
        };
        self.app_roots(&mut inside, server);
        for location in &server.locations {
            let part = self.location(location, &surroundings, &mut beside);
            match &location.tenant {
                Some(tenant) => inside.owned(&tenant.subject, |text| text.append(part)),
                None => inside.append(part),
            }
        }
        inside.append(beside);
        self.error_locations(&mut inside, server);
        if server.host == CATCH_ALL {
            self.health(&mut inside);
        }
        text.around("server", inside);
    }

    /// The sockets of a server.
    fn listens(&self, text: &mut Text, is_default: bool) {
        let settings = self.settings;
        let mut options = String::new();
        if settings.flag("use-proxy-protocol") {
            options.push_str(" proxy_protocol");
        }
        if is_default {
            options.push_str(" default_server");
        }
        let mut addresses: Vec<String> = settings
            .list("bind-address")
            .into_iter()
            .map(|address| {
                if address.contains(':') {
                    format!("[{address}]:")
                } else {
                    format!("{address}:")
                }
            })
            .collect();
        if addresses.is_empty() {
            addresses.push(String::new());
            if self.options.has_ipv6 && !settings.flag("disable-ipv6") {
                addresses.push("[::]:".to_owned());
            }
        }
        for address in &addresses {
            text.directive(format!(
                "listen {address}{}{options}",
                self.options.http_port
            ));
        }
        if self.options.has_passthrough {
            let port = self.options.passthrough_port;
            let default = if is_default { " default_server" } else { "" };
            text.directive(format!(
                "listen 127.0.0.1:{port} ssl proxy_protocol{default}"
            ));
            return;
        }
        for address in &addresses {
            text.directive(format!(
                "listen {address}{} ssl{options}",
                self.options.https_port
            ));
        }
    }

    /// Refuses what the administrator blocks.
    fn refusals(&self, text: &mut Text) {
        for (key, variable) in [
            ("block-user-agents", "$block_ua"),
            ("block-referers", "$block_ref"),
        ] {
            if self.settings.some(key).is_some() {
                text.block(format!("if ({variable})"), |text| {
                    text.directive("return 403");
                });
            }
        }
    }

    fn certificate(&mut self, text: &mut Text, server: &Server) {
        if let Some((_, ciphers)) = server.annotation("ssl-ciphers") {
            text.directive(format!("ssl_ciphers {}", quoted(ciphers)));
        }
        if let Some((_, value)) = server.annotation("ssl-prefer-server-ciphers") {
            let value = if value == "true" { "on" } else { "off" };
            text.directive(format!("ssl_prefer_server_ciphers {value}"));
        }
        let Some((namespace, name)) = &server.secret else {
            return;
        };
        let subject = crate::certificates::subject(namespace, name);
        match self
            .files
            .of_secret(self.objects, namespace, name)
            .map(|files| files.pair)
        {
            Ok(Some(pair)) => text.owned(&subject, |text| {
                let pair = quoted(&pair.display().to_string());
                text.directive(format!("ssl_certificate {pair}"));
                text.directive(format!("ssl_certificate_key {pair}"));
            }),
            Ok(None) => {
                let note = "it has no tls.crt and tls.key: the default certificate is used";
                self.find(&subject, Level::Note, note);
            }
            Err(error) => {
                self.find(
                    &subject,
                    Level::Note,
                    format!("{error}: the default one is used"),
                );
            }
        }
    }

    /// Certificates of clients; returns whether they are looked at, and then passed on.
    fn client_certificates(&mut self, text: &mut Text, server: &Server) -> Option<bool> {
        let (tenant, secret) = server.annotation("auth-tls-secret")?;
        let annotations = &tenant.annotations;
        let named = self.secret_name(&tenant.namespace, secret);
        let files = named.and_then(|(namespace, name)| {
            let files = self.files.of_secret(self.objects, &namespace, &name)?;
            let authorities = files.authorities.ok_or("the Secret has no ca.crt")?;
            Ok((authorities, files.revoked))
        });
        let (authorities, revoked) = match files {
            Ok(files) => files,
            Err(error) => {
                let error = format!("auth-tls-secret: {error}: the host answers with 403");
                self.find_other(&tenant.subject, Level::Closed, error);
                text.directive("return 403");
                return None;
            }
        };
        let verify = annotations.text("auth-tls-verify-client").unwrap_or("on");
        let depth = annotations.number("auth-tls-verify-depth").unwrap_or(1);
        text.owned(&tenant.subject, |text| {
            let path = quoted(&authorities.display().to_string());
            text.directive(format!("ssl_client_certificate {path}"));
            text.directive(format!("ssl_verify_client {verify}"));
            text.directive(format!("ssl_verify_depth {depth}"));
            if let Some(revoked) = revoked {
                text.directive(format!(
                    "ssl_crl {}",
                    quoted(&revoked.display().to_string())
                ));
            }
            if let Some(page) = annotations.text("auth-tls-error-page") {
                text.directive(format!("error_page 495 496 = {}", quoted(page)));
            }
            if let Some(pattern) = annotations.text("auth-tls-match-cn") {
                let condition = format!("if ($ssl_client_s_dn !~ {})", quoted(pattern));
                text.block(condition, |text| {
                    text.directive("return 403 \"client certificate unauthorized\"");
                });
            }
        });
        Some(annotations.flag("auth-tls-pass-certificate-to-upstream"))
    }

    /// Writes the snippets for the whole server. One of a tenant's is only taken for hosts that
    /// no other namespace has paths of. Returns whether one sets fields of requests.
    fn server_snippets(&mut self, text: &mut Text, server: &Server) -> bool {
        self.administrators(text, "server-snippet");
        let general = self.settings.text("server-snippet").contains("_set_header");
        let Some((tenant, snippet)) = server.annotation("server-snippet") else {
            return general;
        };
        let namespaces: BTreeSet<&str> = server
            .tenants
            .iter()
            .map(|tenant| tenant.namespace.as_str())
            .collect();
        if namespaces.len() > 1 || server.host == CATCH_ALL {
            let error = format!(
                "annotation server-snippet is left out: the host {} is not of this namespace alone",
                server.host
            );
            self.find(&tenant.subject, Level::LeftOut, error);
            return general;
        }
        text.owned(&tenant.subject, |text| text.verbatim(snippet));
        for other in server
            .tenants
            .iter()
            .filter(|other| !std::rc::Rc::ptr_eq(other, tenant))
        {
            if other.annotations.text("server-snippet").is_some() {
                let error = format!(
                    "annotation server-snippet is left out: {} has one for {} already",
                    tenant.subject, server.host
                );
                self.find(&other.subject, Level::LeftOut, error);
            }
        }
        general || snippet.contains("_set_header") || snippets::has_location(snippet)
    }

    fn app_roots(&self, text: &mut Text, server: &Server) {
        if let Some((tenant, root)) = server.annotation("app-root")
            && root.starts_with('/')
        {
            text.owned(&tenant.subject, |text| {
                text.block("if ($uri = /)", |text| {
                    let target = format!("$scheme://$http_host{}", literal(root).trim_matches('"'));
                    text.directive(format!("return 302 {}", quoted(&target)));
                });
            });
        }
    }

    /// The server of the name with or without `www.`, which leads to the other one.
    fn other_name(&mut self, text: &mut Text, server: &Server) {
        let other = other_name(&server.host);
        if server.host == CATCH_ALL || server.host.starts_with('*') || self.is_taken(&other) {
            return;
        }
        let code = self.settings.text("http-redirect-code");
        let mut inside = Text::inside_of(2);
        inside.directive(format!("server_name {}", quoted(&other)));
        self.listens(&mut inside, false);
        self.refusals(&mut inside);
        self.certificate(&mut inside, server);
        let target = format!("$pass_access_scheme://{}$request_uri", server.host);
        inside.directive(format!("return {code} {}", quoted(&target)));
        text.around("server", inside);
    }

    /// Whether an Ingress has this host.
    fn is_taken(&self, host: &str) -> bool {
        self.objects.ingresses.values().any(|ingress| {
            let rules = ingress
                .spec
                .iter()
                .flat_map(|spec| spec.rules.iter().flatten());
            rules
                .into_iter()
                .any(|rule| rule.host.as_deref() == Some(host))
        })
    }

    /// The locations that fetch pages for errors.
    fn error_locations(&mut self, text: &mut Text, server: &Server) {
        let mut wanted = BTreeSet::new();
        for code in self.settings.list("custom-http-errors") {
            wanted.insert((code.to_owned(), None));
        }
        for location in &server.locations {
            let Some(tenant) = &location.tenant else {
                continue;
            };
            let own = self.own_default(location);
            for code in tenant.annotations.list("custom-http-errors") {
                wanted.insert((code.to_owned(), own.clone()));
            }
        }
        for (code, own) in wanted {
            let name = own
                .as_ref()
                .map_or("upstream-default-backend".to_owned(), |port| {
                    format!("custom-default-backend-{}-{}", port.namespace, port.service)
                });
            let group = match &own {
                Some(port) => self.plain_group(port),
                None => self.default_group(),
            };
            text.block(format!("location @custom_{name}_{code}"), |text| {
                text.directive("internal");
                let Some(group) = group else {
                    text.directive("return 404");
                    return;
                };
                text.directive("proxy_intercept_errors off");
                for (field, value) in ERROR_FIELDS {
                    text.directive(format!("proxy_set_header {field} {value}"));
                }
                text.directive(format!("proxy_set_header X-Code {code}"));
                text.directive(format!("set $proxy_upstream_name {}", quoted(&name)));
                text.directive("rewrite (.*) / break");
                text.directive(format!("proxy_pass http://{group}"));
            });
        }
    }

    fn health(&self, text: &mut Text) {
        text.block(
            format!("location {}", quoted(&self.options.health_path)),
            |text| {
                text.directive("access_log off");
                text.directive("return 200");
            },
        );
        text.block("location /nginx_status", |text| {
            for key in ["nginx-status-ipv4-whitelist", "nginx-status-ipv6-whitelist"] {
                for network in self.settings.list(key) {
                    text.directive(format!("allow {network}"));
                }
            }
            text.directive("deny all");
            text.directive("access_log off");
            text.directive("stub_status");
        });
    }

    /// The group of an Ingress' own default backend, which also gets its errors.
    pub(super) fn own_default(&self, location: &Location) -> Option<crate::endpoints::Port> {
        let tenant = location.tenant.as_ref()?;
        let name = tenant.annotations.text("default-backend")?;
        let port = crate::endpoints::first_port(self.objects, &tenant.namespace, name)?;
        let servers = port.servers(self.objects, self.options);
        (!servers.addresses.is_empty()).then_some(port)
    }
}

/// The fields of a request for an error's page.
pub(super) const ERROR_FIELDS: &[(&str, &str)] = &[
    ("X-Format", "$http_accept"),
    ("X-Original-URI", "$request_uri"),
    ("X-Namespace", "$namespace"),
    ("X-Ingress-Name", "$ingress_name"),
    ("X-Service-Name", "$service_name"),
    ("X-Service-Port", "$service_port"),
    ("X-Request-ID", "$req_id"),
    ("X-Forwarded-For", "$remote_addr"),
    ("Host", "$best_http_host"),
];

/// The names of a server: a wildcard stands for one label, as in Kubernetes.
fn names(server: &Server) -> String {
    let own = match server.host.strip_prefix("*.") {
        Some(rest) => format!(r"~^(?<subdomain>[\w-]+)\.{}$", rest.replace('.', r"\.")),
        None => server.host.clone(),
    };
    let mut names = quoted(&own);
    for alias in server.aliases.iter().flat_map(|alias| split(alias)) {
        names.push(' ');
        names.push_str(&quoted(alias));
    }
    names
}
