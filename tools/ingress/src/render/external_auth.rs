//! Authentication by a service: `auth-url` of an Ingress, or `global-auth-url` of the ConfigMap.

use super::server::Surroundings;
use super::{Level, Renderer};
use crate::rules::{Location, Tenant};
use crate::snippets;
use crate::text::{Text, quoted};
use crate::values::split;

/// The wishes for a location, its own or the administrator's.
struct Wishes {
    url: String,
    method: Option<String>,
    signin: Option<String>,
    redirect_parameter: String,
    response_fields: Vec<String>,
    request_redirect: Option<String>,
    cache_key: Option<String>,
    cache_durations: Vec<String>,
    always_sets_cookie: bool,
    snippet: Option<String>,
    is_global: bool,
}

impl Renderer<'_> {
    /// Writes the question to the service, and returns the fields that its answer gives to the
    /// request.
    pub(super) fn external_auth(
        &mut self,
        text: &mut Text,
        location: &Location,
        tenant: &Tenant,
        around: &Surroundings,
        beside: &mut Text,
    ) -> Vec<(String, String)> {
        if self.is_listed("no-auth-locations", location) {
            return Vec::new();
        }
        let Some(wishes) = self.wishes(tenant) else {
            return Vec::new();
        };
        let number = self.number();
        let path = format!("/_external-auth-{number}");
        text.directive(format!("auth_request {path}"));
        text.directive("auth_request_set $auth_cookie $upstream_http_set_cookie");
        let always = if wishes.always_sets_cookie {
            " always"
        } else {
            ""
        };
        text.directive(format!("add_header Set-Cookie $auth_cookie{always}"));
        let mut fields = Vec::new();
        for (index, field) in wishes.response_fields.iter().enumerate() {
            let variable = format!("$ingress_own_auth_{number}_{index}");
            let source = field.to_ascii_lowercase().replace('-', "_");
            text.directive(format!(
                "auth_request_set {variable} $upstream_http_{source}"
            ));
            fields.push((field.clone(), variable));
        }
        let part = self.auth_location(&path, &wishes, location, tenant, around);
        beside.owned(&tenant.subject, |beside| beside.append(part));
        if let Some(url) = &wishes.signin {
            text.directive("set_escape_uri $escaped_request_uri $request_uri");
            text.directive(format!("error_page 401 = @signin_{number}"));
            let target = signin_target(url, &wishes.redirect_parameter);
            beside.owned(&tenant.subject, |beside| {
                beside.block(format!("location @signin_{number}"), |beside| {
                    beside.directive("internal");
                    beside.directive("add_header Set-Cookie $auth_cookie");
                    beside.directive(format!("return 302 {}", quoted(&target)));
                });
            });
        }
        fields
    }

    /// The wishes of an Ingress, else the administrator's.
    fn wishes(&mut self, tenant: &Tenant) -> Option<Wishes> {
        let annotations = &tenant.annotations;
        let own = |name: &str| annotations.text(name).map(str::to_owned);
        if let Some(url) = own("auth-url") {
            let durations = own("auth-cache-duration");
            return Some(Wishes {
                url,
                method: own("auth-method"),
                signin: own("auth-signin"),
                redirect_parameter: own("auth-signin-redirect-param").unwrap_or("rd".to_owned()),
                response_fields: list(own("auth-response-headers")),
                request_redirect: own("auth-request-redirect"),
                cache_key: own("auth-cache-key"),
                cache_durations: list(durations.or(Some("200 202 401 5m".to_owned()))),
                always_sets_cookie: annotations.flag("auth-always-set-cookie"),
                snippet: own("auth-snippet"),
                is_global: false,
            });
        }
        let key = |name: &str| self.settings.some(name).map(str::to_owned);
        let url = key("global-auth-url")?;
        let is_wanted = annotations
            .written_flag("enable-global-auth")
            .unwrap_or(true);
        is_wanted.then(|| Wishes {
            url,
            method: key("global-auth-method"),
            signin: key("global-auth-signin"),
            redirect_parameter: key("global-auth-signin-redirect-param").unwrap_or_default(),
            response_fields: list(key("global-auth-response-headers")),
            request_redirect: key("global-auth-request-redirect"),
            cache_key: key("global-auth-cache-key"),
            cache_durations: list(key("global-auth-cache-duration")),
            always_sets_cookie: self.settings.flag("global-auth-always-set-cookie"),
            snippet: key("global-auth-snippet"),
            is_global: true,
        })
    }

    /// The location that asks the service.
    fn auth_location(
        &mut self,
        path: &str,
        wishes: &Wishes,
        location: &Location,
        tenant: &Tenant,
        around: &Surroundings,
    ) -> Text {
        let mut whole = Text::inside_of(2);
        let mut inside = Text::inside_of(3);
        let text = &mut inside;
        text.directive("internal");
        if !self.settings.flag("enable-auth-access-log") {
            text.directive("access_log off");
        }
        if let Some(key) = &wishes.cache_key {
            text.directive("proxy_cache auth_cache");
            for duration in &wishes.cache_durations {
                text.directive(format!("proxy_cache_valid {duration}"));
            }
            // Each location has keys of its own, so that no answer is for another one.
            let key = format!("{}{}{path}{key}", around.host, location.written_path);
            text.directive(format!("proxy_cache_key {}", quoted(&key)));
            self.auth_cache();
        }
        text.directive("proxy_buffering on");
        text.directive("proxy_intercept_errors off");
        text.directive("proxy_pass_request_body off");
        text.directive("proxy_ssl_server_name on");
        self.auth_fields(text, wishes, tenant, around);
        if let Some(size) = tenant.annotations.text("proxy-body-size") {
            text.directive(format!("client_max_body_size {size}"));
        }
        if let Some(snippet) = &wishes.snippet {
            match (wishes.is_global, snippets::check_whole(snippet)) {
                (true, Err(error)) => {
                    let subject = self.config_map();
                    let error = format!("key global-auth-snippet: {error}");
                    self.find(&subject, Level::LeftOut, error);
                }
                _ => text.verbatim(snippet),
            }
        }
        text.directive(format!("set $target {}", quoted(&wishes.url)));
        text.directive("proxy_pass $target");
        whole.around(&format!("location = {path}"), inside);
        whole
    }

    /// The fields of the question.
    fn auth_fields(
        &mut self,
        text: &mut Text,
        wishes: &Wishes,
        tenant: &Tenant,
        around: &Surroundings,
    ) {
        let mut field = |name: &str, value: &str| {
            text.directive(format!("proxy_set_header {name} {value}"));
        };
        field("Content-Length", "\"\"");
        field("X-Forwarded-Proto", "\"\"");
        field("X-Request-ID", "$req_id");
        if wishes.method.is_some() {
            field("X-Original-URI", "$request_uri");
            field("X-Scheme", "$pass_access_scheme");
        }
        field("Host", &quoted(host_of(&wishes.url)));
        field("X-Original-URL", "$scheme://$http_host$request_uri");
        field("X-Original-Method", "$request_method");
        field("X-Sent-From", "nginx-ingress-controller");
        field("X-Real-IP", "$remote_addr");
        let is_full = self.settings.flag("compute-full-forwarded-for");
        if self.settings.flag("use-forwarded-headers") && is_full {
            field("X-Forwarded-For", "$full_x_forwarded_for");
        } else {
            field("X-Forwarded-For", "$remote_addr");
        }
        let redirect = wishes.request_redirect.as_deref();
        field(
            "X-Auth-Request-Redirect",
            &redirect.map_or("$request_uri".to_owned(), quoted),
        );
        if let Some(passes) = around.client_certificates {
            if passes {
                field("ssl-client-cert", "$ssl_client_escaped_cert");
            }
            field("ssl-client-verify", "$ssl_client_verify");
            field("ssl-client-subject-dn", "$ssl_client_s_dn");
            field("ssl-client-issuer-dn", "$ssl_client_i_dn");
        }
        if let Some(method) = &wishes.method {
            text.directive(format!("proxy_method {method}"));
        }
        let Some(named) = tenant.annotations.text("auth-proxy-set-headers") else {
            return;
        };
        let entries = self.secret_name(&tenant.namespace, named);
        let entries =
            entries.and_then(|(namespace, name)| self.entries(&format!("{namespace}/{name}")));
        match entries {
            Ok(entries) => {
                for (name, value) in entries {
                    text.directive(format!("proxy_set_header {name} {}", quoted(&value)));
                }
            }
            Err(error) => {
                let error = format!("auth-proxy-set-headers: {error}");
                self.find_other(&tenant.subject, Level::LeftOut, error);
            }
        }
    }

    /// The zone for the answers of services.
    fn auth_cache(&mut self) {
        if self.zones.insert("auth_cache".to_owned()) {
            let folder = self.options.temporary.display();
            self.shared.directive(format!(
                "proxy_cache_path {folder}/turnpike-auth-cache levels=1:2 \
                 keys_zone=auth_cache:10m max_size=128m inactive=30m use_temp_path=off"
            ));
        }
    }
}

fn list(value: Option<String>) -> Vec<String> {
    value
        .iter()
        .flat_map(|value| split(value))
        .map(str::to_owned)
        .collect()
}

/// The host of an URL, without its port.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.starts_with('[') {
        host.split_inclusive(']').next().unwrap_or_default()
    } else {
        host.split(':').next().unwrap_or_default()
    }
}

/// The address where users sign in, with the one where they came from.
fn signin_target(url: &str, parameter: &str) -> String {
    let parameter = if parameter.is_empty() {
        "rd"
    } else {
        parameter
    };
    let origin = "$pass_access_scheme://$http_host$escaped_request_uri";
    match url.split_once('?') {
        None => format!("{url}?{parameter}={origin}"),
        Some((_, query))
            if query
                .split('&')
                .any(|part| part.starts_with(&format!("{parameter}="))) =>
        {
            url.to_owned()
        }
        Some(_) => format!("{url}&{parameter}={origin}"),
    }
}
