//! Gateway API: Gateways with HTTPRoutes and GRPCRoutes, as far as a configuration says them.
//!
//! Only the fields that are used are read; a filter or a match that is not known closes its rule.

mod routes;

use serde::Deserialize;

pub(crate) use routes::{Attached, attach, subject};

/// The metadata that is used.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub creation_timestamp: String,
}

/// A GatewayClass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClass {
    pub metadata: Metadata,
    pub spec: GatewayClassSpec,
}

/// What a GatewayClass says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClassSpec {
    pub controller_name: String,
}

/// A Gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    pub metadata: Metadata,
    pub spec: GatewaySpec,
}

/// What a Gateway says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    pub gateway_class_name: String,
    pub listeners: Vec<Listener>,
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
}

/// From which namespaces a listener takes routes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteNamespaces {
    pub from: Option<String>,
}

/// A reference to another object; the namespace is the referrer's if there is none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: String,
    pub namespace: Option<String>,
    pub section_name: Option<String>,
    pub port: Option<u16>,
    pub weight: Option<u32>,
}

/// An HTTPRoute or a GRPCRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Route {
    /// `HTTPRoute` or `GRPCRoute`.
    pub kind: String,
    pub metadata: Metadata,
    pub spec: RouteSpec,
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
    pub backend_refs: Vec<Reference>,
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

/// Whether an object of one namespace may name one of another.
pub(crate) fn is_granted(
    grants: &[ReferenceGrant],
    from: (&str, &str),
    to: (&str, &str, &str),
) -> bool {
    let (from_kind, from_namespace) = from;
    let (to_kind, to_namespace, to_name) = to;
    from_namespace == to_namespace
        || grants.iter().any(|grant| {
            let mut sources = grant.spec.from.iter();
            let mut targets = grant.spec.to.iter();
            grant.metadata.namespace == to_namespace
                && sources.any(|source| {
                    source.kind.as_deref() == Some(from_kind)
                        && source.namespace.as_deref() == Some(from_namespace)
                })
                && targets.any(|target| {
                    let is_named = target.name.is_empty() || target.name == to_name;
                    target.kind.as_deref() == Some(to_kind) && is_named
                })
        })
}
