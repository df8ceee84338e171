//! The objects of Gateway API, as far as a configuration and a status need them.
//!
//! Only the fields that are used are read.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

/// The group of Gateway API.
pub(crate) const GROUP: &str = "gateway.networking.k8s.io";

/// The metadata that is used.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub creation_timestamp: String,
    pub generation: i64,
    pub resource_version: String,
    pub uid: String,
}

/// A GatewayClass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClass {
    pub metadata: Metadata,
    pub spec: GatewayClassSpec,
    pub status: serde_json::Value,
}

/// What a GatewayClass says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClassSpec {
    pub controller_name: String,
    pub parameters_ref: Option<Reference>,
}

/// A Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    pub metadata: Metadata,
    pub spec: GatewaySpec,
    pub status: serde_json::Value,
}

/// What a Gateway says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    pub gateway_class_name: String,
    pub listeners: Vec<Listener>,
    pub addresses: Vec<Address>,
    pub infrastructure: Infrastructure,
}

/// An address that a Gateway asks for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    /// `IPAddress`, which is the default, or `Hostname`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub value: Option<String>,
}

/// What is said about the Service of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Infrastructure {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub parameters_ref: Option<Reference>,
}

/// A listener of a Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listener {
    pub name: String,
    pub hostname: Option<String>,
    pub port: u16,
    pub protocol: String,
    pub tls: Option<ListenerTls>,
    pub allowed_routes: AllowedRoutes,
}

/// TLS of a listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    pub mode: Option<String>,
    pub certificate_refs: Vec<Reference>,
}

/// Which routes a listener takes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedRoutes {
    pub namespaces: RouteNamespaces,
    /// The kinds of routes; all that the protocol has if there are none.
    pub kinds: Vec<RouteKind>,
}

/// A kind of routes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteKind {
    pub group: Option<String>,
    pub kind: String,
}

/// From which namespaces a listener takes routes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteNamespaces {
    pub from: Option<String>,
    pub selector: Option<LabelSelector>,
}

/// A reference to another object; the namespace is the referrer's if there is none.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A backend of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backend {
    #[serde(flatten)]
    pub reference: Reference,
    pub weight: Option<u32>,
    pub filters: Vec<Filter>,
}

/// An HTTPRoute, or one of another kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Route {
    /// `HTTPRoute`, `GRPCRoute`, `TLSRoute`, `TCPRoute` or `UDPRoute`.
    pub kind: String,
    pub metadata: Metadata,
    pub spec: RouteSpec,
    pub status: serde_json::Value,
}

/// What a route says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteSpec {
    pub parent_refs: Vec<Reference>,
    pub hostnames: Vec<String>,
    pub rules: Vec<Rule>,
}

/// A rule of a route.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    pub matches: Vec<RouteMatch>,
    pub filters: Vec<Filter>,
    pub backend_refs: Vec<Backend>,
    pub timeouts: Timeouts,
}

/// The times of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeouts {
    pub request: Option<String>,
    pub backend_request: Option<String>,
}

/// What a request must be like.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteMatch {
    pub path: Option<Value>,
    pub headers: Vec<Value>,
    pub query_params: Vec<Value>,
    /// A word for HTTP, an object for gRPC.
    pub method: Option<serde_json::Value>,
}

/// A value with the way to compare it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Value {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub name: String,
    pub value: String,
}

/// A filter of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    #[serde(rename = "type")]
    pub kind: String,
    pub request_header_modifier: HeaderModifier,
    pub response_header_modifier: HeaderModifier,
    pub request_redirect: Redirect,
    pub url_rewrite: Rewrite,
    pub request_mirror: Mirror,
    pub cors: Cors,
}

/// A Service that gets copies of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mirror {
    pub backend_ref: Reference,
    /// The share of requests; all if neither this nor the fraction is there.
    pub percent: Option<u32>,
    pub fraction: Option<Fraction>,
}

impl Mirror {
    /// The share of requests that are copied, from 0 to 100.
    pub(crate) fn percent(&self) -> f64 {
        let share = match (&self.fraction, self.percent) {
            (Some(part), _) => {
                let denominator = part.denominator.unwrap_or(100).max(1);
                f64::from(part.numerator) * 100.0 / f64::from(denominator)
            }
            (None, Some(percent)) => f64::from(percent),
            (None, None) => 100.0,
        };
        share.clamp(0.0, 100.0)
    }
}

/// A part of a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fraction {
    pub numerator: u32,
    /// 100 if it is not there.
    pub denominator: Option<u32>,
}

/// Which requests browsers may send from other origins.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cors {
    pub allow_origins: Vec<String>,
    pub allow_methods: Vec<String>,
    pub allow_headers: Vec<String>,
    pub expose_headers: Vec<String>,
    pub allow_credentials: Option<bool>,
    /// In seconds.
    pub max_age: Option<u32>,
}

/// Fields that are set, added or removed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderModifier {
    pub set: Vec<Value>,
    pub add: Vec<Value>,
    pub remove: Vec<String>,
}

/// A redirect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Redirect {
    pub scheme: Option<String>,
    pub hostname: Option<String>,
    pub port: Option<u16>,
    pub status_code: Option<u16>,
    pub path: Option<PathModifier>,
}

/// What a request becomes on its way.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rewrite {
    pub hostname: Option<String>,
    pub path: Option<PathModifier>,
}

/// What becomes of a path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathModifier {
    #[serde(rename = "type")]
    pub kind: String,
    pub replace_full_path: Option<String>,
    pub replace_prefix_match: Option<String>,
}

/// A BackendTLSPolicy: how Services are spoken to over TLS.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTlsPolicy {
    pub metadata: Metadata,
    pub spec: BackendTlsPolicySpec,
    pub status: serde_json::Value,
}

/// What a BackendTLSPolicy says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTlsPolicySpec {
    pub target_refs: Vec<Reference>,
    pub validation: BackendTlsValidation,
}

/// What the certificate of a Service must be like.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTlsValidation {
    pub ca_certificate_refs: Vec<Reference>,
    pub hostname: String,
    pub subject_alt_names: Vec<serde_json::Value>,
}

/// A ReferenceGrant: who may name objects of its namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReferenceGrant {
    pub metadata: Metadata,
    pub spec: ReferenceGrantSpec,
}

/// What a ReferenceGrant says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReferenceGrantSpec {
    pub from: Vec<Reference>,
    pub to: Vec<Reference>,
}
