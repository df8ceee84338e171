//! The filters of Gateway API: what becomes of requests and responses on their way.

use std::collections::BTreeSet;

use super::gateway::Place;
use super::pass::variable_of;
use super::{Level, Renderer};
use crate::findings::Subject;
use crate::gateway::{Attached, backend};
use crate::gateway_objects::{
    Cors, Filter, HeaderModifier, Mirror, PathModifier, Redirect, Rewrite,
};
use crate::text::{Text, literal, quoted};
use crate::values::only;

/// How long a browser may keep the answer to a preflight if a filter does not say it, in seconds.
const CORS_AGE_S: u32 = 5;

/// What a rule's filters make of a request.
#[derive(Default)]
pub(super) struct Filtered {
    pub(super) request: HeaderModifier,
    pub(super) response: HeaderModifier,
    pub(super) redirect: Option<Redirect>,
    pub(super) rewrite: Rewrite,
    pub(super) cors: Option<Cors>,
    pub(super) mirrors: Vec<Mirror>,
}

impl Renderer<'_> {
    /// Fields that a rule sets, adds and removes. One that is added stands behind what the client
    /// sent under its name.
    pub(super) fn request_fields_of(
        &mut self,
        text: &mut Text,
        protocol: &str,
        modifier: &HeaderModifier,
    ) {
        for field in &modifier.set {
            let value = literal(&field.value);
            text.directive(format!("{protocol}_set_header {} {value}", field.name));
        }
        for field in &modifier.add {
            let sent = variable_of(&field.name);
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

    /// A copy of requests to another Service, or of a share of them.
    pub(super) fn gateway_mirror(
        &mut self,
        (text, beside): (&mut Text, &mut Text),
        attached: &Attached<'_>,
        (mirror, fields): (&Mirror, &HeaderModifier),
        owner: &Subject,
    ) {
        let group = backend(self.objects, attached.route, &mirror.backend_ref)
            .map_err(|reason| reason.text)
            .and_then(|port| {
                let missing = self.servers(&port).missing.clone();
                let group = self.plain_group(&port);
                group.ok_or_else(|| missing.unwrap_or_default())
            });
        let group = match group {
            Ok(group) => group,
            Err(error) => {
                self.find_other(owner, Level::LeftOut, format!("RequestMirror: {error}"));
                return;
            }
        };
        let number = self.number();
        let path = format!("/_gateway-mirror-{number}");
        text.directive(format!("mirror {path}"));
        let share = mirror.percent();
        let chosen = format!("$ingress_own_mirror_{number}");
        if share < 100.0 {
            self.shared.block(
                format!("split_clients \"$request_id-{number}\" {chosen}"),
                |text| {
                    if share >= 0.01 {
                        text.directive(format!("{share:.2}% 1"));
                    }
                    text.directive("* \"\"");
                },
            );
        }
        let mut inside = Text::inside_of(3);
        inside.directive("internal");
        if share < 100.0 {
            inside.block(format!("if ({chosen} = \"\")"), |text| {
                text.directive("return 204");
            });
        }
        self.fields(
            &mut inside,
            "proxy",
            "$best_http_host",
            "$connection_upgrade",
        );
        self.request_fields_of(&mut inside, "proxy", fields);
        inside.directive(format!("proxy_pass http://{group}$request_uri"));
        beside.around(&format!("location = {path}"), inside);
    }

    /// Answers to browsers about requests from other origins.
    pub(super) fn gateway_cors(&mut self, text: &mut Text, cors: &Cors) {
        let number = self.number();
        let name = |part: &str| format!("$ingress_own_cors_{part}_{number}");
        let (origin, asked) = (name("origin"), name("asked"));
        let preflight = name("preflight");
        let shared = &mut self.shared;
        shared.block(format!("map $http_origin {origin}"), |text| {
            text.directive("\"\" \"\"");
            for wanted in &cors.allow_origins {
                let pattern = quoted(&format!("~*^{}$", origin_pattern(wanted)));
                text.directive(format!("{pattern} $http_origin"));
            }
            text.directive("default \"\"");
        });
        // A preflight is never passed on; from another origin it gets an answer without fields.
        for (from, variable) in [("$http_origin", &preflight), (&*origin, &asked)] {
            let request = format!("{from}:$request_method:$http_access_control_request_method");
            shared.block(format!("map {} {variable}", quoted(&request)), |text| {
                text.directive("\"~^.+:OPTIONS:.+$\" 1");
                text.directive("default \"\"");
            });
        }
        let shows_login = cors.allow_credentials.unwrap_or(false);
        let listed = |values: &[String], echoed: &str| match values {
            values if !values.iter().any(|value| value == "*") => literal(&values.join(", ")),
            // A wildcard is no wildcard for requests with a login.
            _ if shows_login => echoed.to_owned(),
            _ => "*".to_owned(),
        };
        let methods = listed(&cors.allow_methods, "$http_access_control_request_method");
        let headers = listed(&cors.allow_headers, "$http_access_control_request_headers");
        let age = cors.max_age.unwrap_or(CORS_AGE_S).to_string();
        for (field, source, value) in [
            ("Allow-Methods", &asked, methods),
            ("Allow-Headers", &asked, headers),
            ("Max-Age", &asked, age),
            (
                "Expose-Headers",
                &origin,
                literal(&cors.expose_headers.join(", ")),
            ),
            (
                "Allow-Credentials",
                &origin,
                if shows_login { "true" } else { "\"\"" }.to_owned(),
            ),
            ("Allow-Origin", &origin, origin.clone()),
        ] {
            let variable = name(&field.to_ascii_lowercase().replace('-', "_"));
            shared.block(format!("map {source} {variable}"), |text| {
                text.directive("\"\" \"\"");
                text.directive(format!("default {value}"));
            });
            let field = format!("Access-Control-{field}: {variable}");
            text.directive(format!("more_set_headers {}", quoted(&field)));
        }
        text.block(format!("if ({preflight})"), |text| {
            text.directive("return 204");
        });
    }
}

/// Writes a redirect.
pub(super) fn gateway_redirect(
    text: &mut Text,
    attached: &Attached<'_>,
    place: Place,
    redirect: &Redirect,
) {
    let own = if place.is_secure { "https" } else { "http" };
    let scheme = redirect.scheme.as_deref().filter(|scheme| only(scheme, ""));
    let host = redirect.hostname.as_deref().filter(|host| only(host, ".-"));
    let host = host.unwrap_or("$ingress_own_redirect_host");
    // Another scheme has its own usual port; without one the listener's port stays.
    let port = match (redirect.port, scheme) {
        (Some(port), _) => Some(port),
        (None, Some(_)) => None,
        (None, None) => Some(place.port),
    };
    let scheme = scheme.unwrap_or(own);
    let usual = if scheme == "https" { 443 } else { 80 };
    let port = port.filter(|port| *port != usual);
    let port = port.map_or(String::new(), |port| format!(":{port}"));
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
    let target = quoted(&format!("{scheme}://{host}{port}{path}"));
    text.directive(format!("return {code} {target}"));
}

/// Sorts filters; each may come once, and one that is not known is an error.
pub(super) fn filtered(filters: &[Filter]) -> Result<Filtered, String> {
    let mut filtered = Filtered::default();
    let mut seen = BTreeSet::new();
    for filter in filters {
        if !seen.insert(filter.kind.as_str()) && filter.kind != "RequestMirror" {
            return Err(format!("filter {} is given twice", filter.kind));
        }
        match filter.kind.as_str() {
            "RequestHeaderModifier" => filtered.request = filter.request_header_modifier.clone(),
            "ResponseHeaderModifier" => filtered.response = filter.response_header_modifier.clone(),
            "RequestRedirect" => filtered.redirect = Some(filter.request_redirect.clone()),
            "URLRewrite" => filtered.rewrite = filter.url_rewrite.clone(),
            "RequestMirror" => filtered.mirrors.push(filter.request_mirror.clone()),
            "CORS" => filtered.cors = Some(checked_cors(&filter.cors)?),
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
                return Err(format!("\"{}\" is not a field", name.escape_debug()));
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
        Err("the host of URLRewrite is not a name".to_owned())
    }
}

/// Fields that a rule sets, adds and removes in responses.
pub(super) fn response_fields(text: &mut Text, modifier: &HeaderModifier) {
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
pub(super) fn rewritten(attached: &Attached<'_>, path: &PathModifier) -> (String, String) {
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
    if target.is_empty() {
        (format!("^{prefix}/?(.*)$"), "/$1".to_owned())
    } else {
        // What is the prefix as a whole has no slash behind it, and gets none.
        (format!("^{prefix}(/.*)?$"), format!("{target}$1"))
    }
}

/// A CORS filter whose values are what they should be.
fn checked_cors(cors: &Cors) -> Result<Cors, String> {
    let names = [
        &cors.allow_methods,
        &cors.allow_headers,
        &cors.expose_headers,
    ];
    let mut names = names.into_iter().flatten();
    if let Some(name) = names.find(|name| *name != "*" && !only(name, "-_")) {
        return Err(format!("CORS: \"{}\" is not a name", name.escape_debug()));
    }
    let mut origins = cors.allow_origins.iter();
    if let Some(origin) = origins.find(|origin| !only(origin, "-_.:/*")) {
        return Err(format!(
            "CORS: \"{}\" is not an origin",
            origin.escape_debug()
        ));
    }
    Ok(cors.clone())
}

/// The regular expression of an origin, whose host may begin with a wildcard.
fn origin_pattern(origin: &str) -> String {
    escaped(origin).replace("\\*", ".+")
}

/// A text as a regular expression that stands for itself.
pub(super) fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if !character.is_alphanumeric() && !"/-_".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
