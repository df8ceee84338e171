//! Access to a location: networks, users, other origins, limits; and copies and canaries.

use std::rc::Rc;

use super::{Level, Renderer};
use crate::rules::{Location, Tenant};
use crate::text::{Text, quoted};

/// The size of a zone for limits, as in ingress-nginx.
const ZONE_SIZE: &str = "5m";

/// How many times the rate may come at once, unless an annotation says it.
const BURST: u32 = 5;

/// The most that a burst can be: the engine's own limit of a number.
const BURST_MAX: u32 = 1_000_000;

impl Renderer<'_> {
    /// The namespace and name of an object that an annotation names, as `name` or
    /// `namespace/name`.
    ///
    /// # Errors
    /// It is another namespace's, and that is switched off.
    pub(super) fn secret_name(
        &self,
        namespace: &str,
        text: &str,
    ) -> Result<(String, String), String> {
        let (other, name) = text.split_once('/').unwrap_or((namespace, text));
        if other == namespace || self.settings.flag("allow-cross-namespace-resources") {
            Ok((other.to_owned(), name.to_owned()))
        } else {
            Err(format!(
                "{text} belongs to another namespace; the administrator can set \
             allow-cross-namespace-resources"
            ))
        }
    }

    /// The networks from which clients may and may not come.
    pub(super) fn networks(&self, text: &mut Text, tenant: &Tenant) {
        let list = |name: &str| {
            let own = tenant.annotations.list(name);
            if own.is_empty() {
                self.settings.list(name)
            } else {
                own
            }
        };
        for network in list("denylist-source-range") {
            text.directive(format!("deny {network}"));
        }
        let allowed = list("whitelist-source-range");
        if allowed.is_empty() {
            return;
        }
        for network in allowed {
            text.directive(format!("allow {network}"));
        }
        text.directive("deny all");
    }

    /// Users with passwords. Returns whether the location may be served.
    pub(super) fn users(&mut self, text: &mut Text, tenant: &Tenant) -> bool {
        let annotations = &tenant.annotations;
        let Some(secret) = annotations.text("auth-secret") else {
            return true;
        };
        let is_digest = annotations
            .text("auth-type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("digest"));
        if is_digest {
            let text =
                "auth-type digest is not supported: use basic or auth-url; the answer is 503";
            self.find(&tenant.subject, Level::Closed, text);
            return false;
        }
        let is_map = annotations.text("auth-secret-type") == Some("auth-map");
        let named = self.secret_name(&tenant.namespace, secret);
        let file = named.and_then(|(namespace, name)| {
            self.files.users(self.objects, (&namespace, &name), is_map)
        });
        match file {
            Ok(path) => {
                let realm = annotations
                    .text("auth-realm")
                    .unwrap_or("Authentication Required");
                text.directive(format!("auth_basic {}", quoted(realm)));
                let path = quoted(&path.display().to_string());
                text.directive(format!("auth_basic_user_file {path}"));
                true
            }
            Err(error) => {
                let error = format!("auth-secret: {error}; the answer is 503");
                self.find_other(&tenant.subject, Level::Closed, error);
                false
            }
        }
    }

    /// Answers to pages of other origins.
    pub(super) fn cross_origin(&self, text: &mut Text, tenant: &Tenant) {
        let annotations = &tenant.annotations;
        if !annotations.flag("enable-cors") {
            return;
        }
        let origins = annotations.list("cors-allow-origin");
        let is_any = origins.is_empty() || origins == ["*"];
        text.directive("set $cors \"\"");
        if is_any {
            text.directive("set $cors \"true\"");
        } else {
            let patterns: Vec<String> = origins
                .iter()
                .map(|origin| origin_pattern(origin))
                .collect();
            let pattern = quoted(&format!("^({})$", patterns.join("|")));
            text.block(format!("if ($http_origin ~* {pattern})"), |text| {
                text.directive("set $cors \"true\"");
            });
        }
        text.block("if ($request_method = OPTIONS)", |text| {
            text.directive("set $cors \"${cors}options\"");
        });
        let fields = cors_fields(tenant, is_any);
        text.block("if ($cors = \"true\")", |text| {
            for field in &fields {
                text.directive(format!("more_set_headers {}", quoted(field)));
            }
        });
        text.block("if ($cors = \"trueoptions\")", |text| {
            for field in &fields {
                text.directive(format!("more_set_headers {}", quoted(field)));
            }
            text.directive("more_set_headers \"Content-Type: text/plain charset=UTF-8\"");
            text.directive("return 204");
        });
    }

    /// Limits of requests, connections and rates.
    pub(super) fn limits(&mut self, text: &mut Text, tenant: &Tenant) {
        let annotations = &tenant.annotations;
        let limit = |name: &str| annotations.number(name).filter(|number| *number > 0);
        let stem = format!("{}_{}", tenant.namespace, tenant.name);
        let (rps, rpm) = (limit("limit-rps"), limit("limit-rpm"));
        let connections = limit("limit-connections");
        if rps.is_some() || rpm.is_some() || connections.is_some() {
            let key = self.limit_key(tenant);
            if let Some(number) = connections {
                let zone = format!("{stem}_conn");
                self.zone(&zone, |zone| {
                    format!("limit_conn_zone {key} zone={zone}:{ZONE_SIZE}")
                });
                text.directive(format!("limit_conn {zone} {number}"));
            }
            let factor = limit("limit-burst-multiplier").unwrap_or(BURST);
            for (rate, unit) in [(rps, "s"), (rpm, "m")] {
                let Some(rate) = rate else {
                    continue;
                };
                let zone = format!("{stem}_rp{unit}");
                let burst = rate.saturating_mul(factor).min(BURST_MAX);
                self.zone(&zone, |zone| {
                    format!("limit_req_zone {key} zone={zone}:{ZONE_SIZE} rate={rate}r/{unit}")
                });
                text.directive(format!("limit_req zone={zone} burst={burst} nodelay"));
            }
        }
        for (directive, name) in [
            ("limit_rate_after", "limit-rate-after"),
            ("limit_rate", "limit-rate"),
        ] {
            let general = self.settings.number(name);
            let kilobytes = annotations.number(name).unwrap_or(general);
            if kilobytes > 0 {
                text.directive(format!("{directive} {kilobytes}k"));
            }
        }
    }

    /// Writes a zone once.
    fn zone(&mut self, name: &str, line: impl FnOnce(&str) -> String) {
        if self.zones.insert(name.to_owned()) {
            self.shared.directive(line(name));
        }
    }

    /// What a limit counts by: the client, unless it is one of those without limits.
    fn limit_key(&mut self, tenant: &Tenant) -> String {
        let general = self.settings.text("limit-conn-zone-variable").to_owned();
        let networks = tenant.annotations.list("limit-allowlist");
        if networks.is_empty() {
            return general;
        }
        let name = format!("{}_{}_key", tenant.namespace, tenant.name).replace(['-', '.'], "_");
        let variable = format!("$ingress_own_{name}");
        if self.zones.insert(variable.clone()) {
            self.shared
                .block(format!("geo $remote_addr {variable}_is_free"), |text| {
                    text.directive("default 0");
                    for network in networks {
                        text.directive(format!("{network} 1"));
                    }
                });
            self.shared
                .block(format!("map {variable}_is_free {variable}"), |text| {
                    text.directive(format!("0 {general}"));
                    text.directive("1 \"\"");
                });
        }
        variable
    }

    /// Copies of requests.
    pub(super) fn mirror(&mut self, text: &mut Text, tenant: &Tenant, beside: &mut Text) {
        let annotations = &tenant.annotations;
        let Some(target) = annotations.text("mirror-target") else {
            return;
        };
        let Some((_, rest)) = target.split_once("://") else {
            let error = "mirror-target has no scheme such as https://";
            self.find(&tenant.subject, Level::LeftOut, error);
            return;
        };
        let host = rest.split(['/', '$']).next().unwrap_or_default();
        let host = annotations.text("mirror-host").unwrap_or(host);
        let path = format!("/_mirror-{}", self.number());
        text.directive(format!("mirror {path}"));
        let body = annotations.text("mirror-request-body").unwrap_or("on");
        text.directive(format!("mirror_request_body {body}"));
        beside.owned(&tenant.subject, |text| {
            text.block(format!("location = {path}"), |text| {
                text.directive("internal");
                text.directive(format!("proxy_set_header Host {}", quoted(host)));
                text.directive(format!("set $ingress_own_mirror {}", quoted(target)));
                text.directive("proxy_pass $ingress_own_mirror");
            });
        });
    }

    /// TLS with upstream servers. Returns whether it can be had.
    pub(super) fn upstream_tls(&mut self, text: &mut Text, tenant: &Tenant, family: &str) -> bool {
        let annotations = &tenant.annotations;
        for (directive, name) in [
            ("ssl_name", "proxy-ssl-name"),
            ("ssl_server_name", "proxy-ssl-server-name"),
        ] {
            if let Some(value) = annotations.text(name) {
                text.directive(format!("{family}_{directive} {}", quoted(value)));
            }
        }
        let Some(secret) = annotations.text("proxy-ssl-secret") else {
            return true;
        };
        let named = self.secret_name(&tenant.namespace, secret);
        let files = named
            .and_then(|(namespace, name)| self.files.of_secret(self.objects, &namespace, &name));
        let files = match files {
            Ok(files) => files,
            Err(error) => {
                let error = format!("proxy-ssl-secret: {error}; the answer is 503");
                self.find_other(&tenant.subject, Level::Closed, error);
                return false;
            }
        };
        if let Some(path) = files.authorities {
            let path = quoted(&path.display().to_string());
            text.directive(format!("{family}_ssl_trusted_certificate {path}"));
            let verify = annotations.text("proxy-ssl-verify").unwrap_or("off");
            text.directive(format!(
                "{family}_ssl_verify {}",
                verify.to_ascii_lowercase()
            ));
            let depth = annotations.number("proxy-ssl-verify-depth").unwrap_or(1);
            text.directive(format!("{family}_ssl_verify_depth {depth}"));
            let protocols = annotations
                .text("proxy-ssl-protocols")
                .unwrap_or("TLSv1.2 TLSv1.3");
            text.directive(format!("{family}_ssl_protocols {protocols}"));
            if let Some(ciphers) = annotations.text("proxy-ssl-ciphers") {
                text.directive(format!("{family}_ssl_ciphers {}", quoted(ciphers)));
            }
        }
        if let Some(path) = files.pair {
            let path = quoted(&path.display().to_string());
            text.directive(format!("{family}_ssl_certificate {path}"));
            text.directive(format!("{family}_ssl_certificate_key {path}"));
        }
        true
    }

    /// The variable that has the name of the main group or the canary's, and the variable for
    /// logs. None if the canary has no server.
    pub(super) fn canary(
        &mut self,
        location: &Location,
        main: Option<&str>,
    ) -> Option<(String, String)> {
        let canary = location.canary.as_ref()?;
        let tenant = Rc::clone(&canary.tenant);
        let second = self.group(&canary.port, location, Some(&tenant))?;
        let Some(main) = main else {
            return None; // without the main group the answer is 503, as in ingress-nginx
        };
        let number = self.number();
        let is_second = self.canary_choice(location, &tenant, number);
        self.shared.block(
            format!("map {is_second} $ingress_own_group_{number}"),
            |text| {
                text.directive(format!("1 {second}"));
                text.directive(format!("default {main}"));
            },
        );
        self.shared.block(
            format!("map {is_second} $ingress_own_canary_{number}"),
            |text| {
                text.directive(format!("1 {}", quoted(&canary.port.shown())));
                text.directive("default \"\"");
            },
        );
        Some((
            format!("$ingress_own_group_{number}"),
            format!("$ingress_own_canary_{number}"),
        ))
    }

    /// The variable that is 1 for requests to the canary: by header, then by cookie, then by
    /// weight, unless a session has a server already.
    fn canary_choice(&mut self, location: &Location, tenant: &Tenant, number: usize) -> String {
        let annotations = &tenant.annotations;
        let total = annotations
            .number("canary-weight-total")
            .unwrap_or(100)
            .max(100);
        let weight = annotations.number("canary-weight").unwrap_or(0);
        let mut choice = match weight {
            0 => "0".to_owned(),
            weight if weight >= total => "1".to_owned(),
            weight => {
                let variable = format!("$ingress_own_share_{number}");
                let percent = f64::from(weight) * 100.0 / f64::from(total);
                let head = format!("split_clients \"$request_id{number}\" {variable}");
                self.shared.block(head, |text| {
                    text.directive(format!("{:.2}% 1", percent.clamp(0.01, 99.99)));
                    text.directive("* 0");
                });
                variable
            }
        };
        if let Some(cookie) = annotations.text("canary-by-cookie") {
            let head = format!("map $cookie_{cookie} $ingress_own_by_cookie_{number}");
            self.shared.block(head, |text| {
                text.directive("always 1");
                text.directive("never 0");
                text.directive(format!("default {choice}"));
            });
            choice = format!("$ingress_own_by_cookie_{number}");
        }
        if let Some(header) = annotations.text("canary-by-header") {
            let field = super::pass::variable_of(header);
            let head = format!("map {field} $ingress_own_by_header_{number}");
            let value = annotations.text("canary-by-header-value");
            let pattern = annotations.text("canary-by-header-pattern");
            self.shared.owned(&tenant.subject, |text| {
                text.block(head, |text| {
                    match (value, pattern) {
                        (Some(value), _) => text.directive(format!("{} 1", map_key(value))),
                        (None, Some(pattern)) => {
                            text.directive(format!("{} 1", quoted(&format!("~{pattern}"))));
                        }
                        (None, None) => {
                            text.directive("always 1");
                            text.directive("never 0");
                        }
                    }
                    text.directive(format!("default {choice}"));
                });
            });
            choice = format!("$ingress_own_by_header_{number}");
        }
        self.sticky_choice(location, tenant, number, choice)
    }

    /// Keeps a session where it is, if both groups have a cookie.
    fn sticky_choice(
        &mut self,
        location: &Location,
        tenant: &Tenant,
        number: usize,
        choice: String,
    ) -> String {
        let annotations = &tenant.annotations;
        let is_legacy = annotations.text("affinity-canary-behavior") == Some("legacy");
        let main = location.tenant.as_ref();
        let has_cookie = |tenant: &Tenant| tenant.annotations.text("affinity") == Some("cookie");
        let Some(main) = main.filter(|main| has_cookie(main) && !is_legacy) else {
            return choice;
        };
        let name = |tenant: &Tenant| {
            let name = tenant.annotations.text("session-cookie-name");
            name.unwrap_or("INGRESSCOOKIE").to_owned()
        };
        let (first, second) = (name(main), name(tenant));
        let has_second = has_cookie(tenant) && second != first;
        let mut chosen = choice;
        self.shared.block(
            format!("map $cookie_{first} $ingress_own_by_main_{number}"),
            |text| {
                text.directive(format!("\"\" {chosen}"));
                text.directive("default 0");
            },
        );
        chosen = format!("$ingress_own_by_main_{number}");
        if has_second {
            let head = format!("map $cookie_{second} $ingress_own_by_second_{number}");
            self.shared.block(head, |text| {
                text.directive(format!("\"\" {chosen}"));
                text.directive("default 1");
            });
            chosen = format!("$ingress_own_by_second_{number}");
        }
        chosen
    }
}

/// A word of a map that is compared as it is.
fn map_key(word: &str) -> String {
    match word {
        "default" | "hostnames" | "volatile" | "include" => quoted(&format!("\\{word}")),
        _ if word.starts_with('~') => quoted(&format!("\\{word}")),
        _ => quoted(word),
    }
}

/// The regular expression for an origin; a `*` stands for one label.
fn origin_pattern(origin: &str) -> String {
    let mut pattern = String::new();
    for character in origin.chars() {
        match character {
            '*' => pattern.push_str(r"[A-Za-z0-9\-]+"),
            character if character.is_ascii_alphanumeric() => pattern.push(character),
            character => {
                pattern.push('\\');
                pattern.push(character);
            }
        }
    }
    pattern
}

/// The fields for pages of other origins.
fn cors_fields(tenant: &Tenant, is_any: bool) -> Vec<String> {
    let annotations = &tenant.annotations;
    let text =
        |name: &str, default: &'static str| annotations.text(name).unwrap_or(default).to_owned();
    let origin = if is_any { "*" } else { "$http_origin" };
    let mut fields = vec![format!("Access-Control-Allow-Origin: {origin}")];
    if annotations
        .written_flag("cors-allow-credentials")
        .unwrap_or(true)
    {
        fields.push("Access-Control-Allow-Credentials: true".to_owned());
    }
    let methods = text(
        "cors-allow-methods",
        "GET, PUT, POST, DELETE, PATCH, OPTIONS",
    );
    fields.push(format!("Access-Control-Allow-Methods: {methods}"));
    let headers = text(
        "cors-allow-headers",
        "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,\
         Range,Authorization",
    );
    fields.push(format!("Access-Control-Allow-Headers: {headers}"));
    if let Some(exposed) = annotations.text("cors-expose-headers") {
        fields.push(format!("Access-Control-Expose-Headers: {exposed}"));
    }
    let age = annotations.number("cors-max-age").unwrap_or(1_728_000);
    fields.push(format!("Access-Control-Max-Age: {age}"));
    fields
}
