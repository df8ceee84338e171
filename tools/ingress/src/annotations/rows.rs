//! The annotations, a row each: name, what a value may be, how much it may open, and what becomes
//! of it.

use super::AnnotationRow;
use super::Risk::{Critical, High, Low, Medium};
use crate::values::Effect::{Differs, Refused, WithoutEffect, Works};
use crate::values::Kind::{
    Capture, Choice, Ciphers, Codes, Flag, Headers, Name, Names, Networks, Number, Origins,
    Pattern, ServerNames, Size, Snippet, Template, Url, UrlTemplate,
};

const NO_MODSECURITY: &str =
    "the engine has no ModSecurity: put a firewall with these rules before or behind it";

/// Every annotation of ingress-nginx, in the order of its documentation.
pub static ANNOTATIONS: &[AnnotationRow] = &[
    row("app-root", Name, Medium, Works),
    row("affinity", Choice(&["cookie"]), Low, Works),
    row(
        "affinity-mode",
        Choice(&["balanced", "persistent"]),
        Medium,
        WithoutEffect("a session stays with its server in both modes, also if the group grows"),
    ),
    row(
        "affinity-canary-behavior",
        Choice(&["sticky", "legacy"]),
        Low,
        Works,
    ),
    row("auth-realm", Names, Medium, Works),
    guard("auth-secret", Name, Medium, Works),
    guard(
        "auth-secret-type",
        Choice(&["auth-file", "auth-map"]),
        Low,
        Works,
    ),
    guard(
        "auth-type",
        Choice(&["basic", "digest"]),
        Low,
        Differs("digest is refused, since the engine has basic authentication only: use auth-url"),
    ),
    guard("auth-tls-secret", Name, Medium, Works),
    row("auth-tls-verify-depth", Number, Low, Works),
    guard(
        "auth-tls-verify-client",
        Choice(&["on", "off", "optional", "optional_no_ca"]),
        Medium,
        Works,
    ),
    row("auth-tls-error-page", Url, High, Works),
    row("auth-tls-pass-certificate-to-upstream", Flag, Low, Works),
    guard("auth-tls-match-cn", Pattern, High, Works),
    guard("auth-url", UrlTemplate, High, Works),
    row("auth-method", Name, Low, Works),
    row("auth-signin", UrlTemplate, High, Works),
    row("auth-signin-redirect-param", Name, Medium, Works),
    row("auth-response-headers", Headers, Medium, Works),
    row("auth-request-redirect", UrlTemplate, Medium, Works),
    row("auth-cache-key", Template, Medium, Works),
    row("auth-cache-duration", Names, Medium, Works),
    row(
        "auth-keepalive",
        Number,
        Low,
        WithoutEffect("connections to the authentication service are not kept"),
    ),
    row(
        "auth-keepalive-share-vars",
        Flag,
        Low,
        WithoutEffect("the authentication request always shares the variables of its request"),
    ),
    row(
        "auth-keepalive-requests",
        Number,
        Low,
        WithoutEffect("connections to the authentication service are not kept"),
    ),
    row(
        "auth-keepalive-timeout",
        Number,
        Low,
        WithoutEffect("connections to the authentication service are not kept"),
    ),
    row("auth-proxy-set-headers", Name, Medium, Works),
    row("auth-always-set-cookie", Flag, Low, Works),
    row("auth-snippet", Snippet, Critical, Works),
    row("enable-global-auth", Flag, Low, Works),
    row(
        "backend-protocol",
        Choice(&["HTTP", "HTTPS", "AUTO_HTTP", "GRPC", "GRPCS", "FCGI"]),
        Low,
        Works,
    ),
    row("canary", Flag, Low, Works),
    row("canary-by-header", Headers, Medium, Works),
    row("canary-by-header-value", Names, Medium, Works),
    row("canary-by-header-pattern", Pattern, Medium, Works),
    row("canary-by-cookie", Name, Medium, Works),
    row("canary-weight", Number, Low, Works),
    row("canary-weight-total", Number, Low, Works),
    row("client-body-buffer-size", Size, Low, Works),
    row("configuration-snippet", Snippet, Critical, Works),
    row("custom-http-errors", Codes, Low, Works),
    row("custom-headers", Name, Medium, Works),
    row("default-backend", Name, Low, Works),
    row("disable-proxy-intercept-errors", Flag, Low, Works),
    row("enable-cors", Flag, Low, Works),
    row("cors-allow-origin", Origins, Medium, Works),
    row("cors-allow-methods", Headers, Medium, Works),
    row("cors-allow-headers", Headers, Medium, Works),
    row("cors-expose-headers", Headers, Medium, Works),
    row("cors-allow-credentials", Flag, Low, Works),
    row("cors-max-age", Number, Low, Works),
    row("force-ssl-redirect", Flag, Medium, Works),
    row("from-to-www-redirect", Flag, Low, Works),
    row(
        "http2-push-preload",
        Flag,
        Low,
        WithoutEffect("no client accepts pushes any more; the engine sends 103 with early_hints"),
    ),
    guard("limit-connections", Number, Low, Works),
    guard("limit-rps", Number, Low, Works),
    guard("limit-rpm", Number, Low, Works),
    row("limit-burst-multiplier", Number, Low, Works),
    row("limit-rate", Number, Low, Works),
    row("limit-rate-after", Number, Low, Works),
    row("limit-allowlist", Networks, Low, Works).or("limit-whitelist"),
    row("permanent-redirect", UrlTemplate, Medium, Works),
    row("permanent-redirect-code", Number, Low, Works),
    row("temporal-redirect", UrlTemplate, Medium, Works),
    row("temporal-redirect-code", Number, Low, Works),
    row("relative-redirects", Flag, Low, Works),
    row("preserve-trailing-slash", Flag, Medium, Works),
    row("proxy-body-size", Size, Medium, Works),
    row("proxy-cookie-domain", Template, Medium, Works),
    row("proxy-cookie-path", Template, Medium, Works),
    row("proxy-connect-timeout", Number, Low, Works),
    row("proxy-send-timeout", Number, Low, Works),
    row("proxy-read-timeout", Number, Low, Works),
    row("proxy-next-upstream", Names, Medium, Works),
    row("proxy-next-upstream-timeout", Number, Low, Works),
    row("proxy-next-upstream-tries", Number, Low, Works),
    row(
        "proxy-request-buffering",
        Choice(&["on", "off"]),
        Low,
        Works,
    ),
    row("proxy-redirect-from", UrlTemplate, Medium, Works),
    row("proxy-redirect-to", UrlTemplate, Medium, Works),
    row("proxy-http-version", Choice(&["1.0", "1.1"]), Low, Works),
    guard("proxy-ssl-secret", Name, Medium, Works),
    row("proxy-ssl-ciphers", Ciphers, Medium, Works),
    row("proxy-ssl-name", Name, High, Works),
    row("proxy-ssl-protocols", Ciphers, Low, Works),
    guard("proxy-ssl-verify", Choice(&["on", "off"]), Low, Works),
    row("proxy-ssl-verify-depth", Number, Low, Works),
    row("proxy-ssl-server-name", Choice(&["on", "off"]), Low, Works),
    row("enable-rewrite-log", Flag, Low, Works),
    row("rewrite-target", Capture, Medium, Works),
    guard("satisfy", Choice(&["any", "all"]), Low, Works),
    row("server-alias", ServerNames, High, Works),
    row("server-snippet", Snippet, Critical, Works),
    row("service-upstream", Flag, Low, Works),
    row(
        "session-cookie-change-on-failure",
        Flag,
        Low,
        Differs("the cookie always names the server that answered"),
    ),
    row("session-cookie-conditional-samesite-none", Flag, Low, Works),
    row("session-cookie-domain", Name, Medium, Works),
    row("session-cookie-expires", Number, Medium, Works),
    row("session-cookie-max-age", Number, Medium, Works),
    row("session-cookie-name", Name, Medium, Works),
    row("session-cookie-path", Name, Medium, Works),
    row(
        "session-cookie-samesite",
        Choice(&["None", "Lax", "Strict"]),
        Low,
        Works,
    ),
    row("session-cookie-secure", Flag, Low, Works),
    row("ssl-redirect", Flag, Low, Works),
    row("ssl-passthrough", Flag, Low, Works),
    row("ssl-ciphers", Ciphers, Low, Works),
    row("ssl-prefer-server-ciphers", Flag, Low, Works),
    row("stream-snippet", Snippet, Critical, Works),
    row("upstream-hash-by", Template, High, Works),
    row(
        "upstream-hash-by-subset",
        Flag,
        Low,
        WithoutEffect(
            "a key has one server of the group; the next one takes its requests if it fails",
        ),
    ),
    row(
        "upstream-hash-by-subset-size",
        Number,
        Low,
        WithoutEffect(
            "a key has one server of the group; the next one takes its requests if it fails",
        ),
    ),
    row("upstream-vhost", Template, Low, Works),
    row("use-port-in-redirects", Flag, Low, Works),
    row("use-regex", Flag, Low, Works),
    row("x-forwarded-prefix", Name, Medium, Works),
    row(
        "load-balance",
        Choice(&["round_robin", "ewma", "least_conn", "ip_hash"]),
        Low,
        Differs(
            "ewma is the shorter response time of two random servers, without a weighted average",
        ),
    ),
    guard("denylist-source-range", Networks, Medium, Works),
    guard("whitelist-source-range", Networks, Medium, Works).or("allowlist-source-range"),
    row("proxy-buffering", Choice(&["on", "off"]), Low, Works),
    row("proxy-buffers-number", Number, Low, Works),
    row("proxy-buffer-size", Size, Low, Works),
    row("proxy-busy-buffers-size", Size, Low, Works),
    row("proxy-max-temp-file-size", Size, Low, Works),
    row("connection-proxy-header", Names, Low, Works),
    row("enable-access-log", Flag, Low, Works),
    row("enable-opentelemetry", Flag, Low, Works),
    row("opentelemetry-trust-incoming-span", Flag, Low, Works),
    row("opentelemetry-operation-name", Template, Medium, Works),
    row("fastcgi-index", Name, Medium, Works),
    row("fastcgi-params-configmap", Name, Medium, Works),
    row("enable-modsecurity", Flag, Low, Refused(NO_MODSECURITY)),
    row(
        "enable-owasp-core-rules",
        Flag,
        Low,
        Refused(NO_MODSECURITY),
    ),
    row(
        "modsecurity-transaction-id",
        Template,
        High,
        Refused(NO_MODSECURITY),
    ),
    row(
        "modsecurity-snippet",
        Snippet,
        Critical,
        Refused(NO_MODSECURITY),
    ),
    row("mirror-request-body", Choice(&["on", "off"]), Low, Works),
    row("mirror-target", UrlTemplate, High, Works),
    row("mirror-host", UrlTemplate, High, Works),
];

/// An annotation whose loss opens nothing.
const fn row(
    name: &'static str,
    kind: crate::values::Kind,
    risk: super::Risk,
    effect: crate::values::Effect,
) -> AnnotationRow {
    AnnotationRow {
        name,
        other_name: None,
        kind,
        risk,
        effect,
        is_guard: false,
    }
}

/// An annotation that protects a route: a value that cannot be used closes the route.
const fn guard(
    name: &'static str,
    kind: crate::values::Kind,
    risk: super::Risk,
    effect: crate::values::Effect,
) -> AnnotationRow {
    AnnotationRow {
        is_guard: true,
        ..row(name, kind, risk, effect)
    }
}

impl AnnotationRow {
    /// The same row with an older name.
    const fn or(self, name: &'static str) -> AnnotationRow {
        AnnotationRow {
            other_name: Some(name),
            ..self
        }
    }
}
