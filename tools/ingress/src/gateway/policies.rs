//! BackendTLSPolicy: which Services are spoken to over TLS, and whom their certificates must come
//! from.

use serde_json::Value as Json;

use super::analysis::Analysis;
use super::references::Reason;
use crate::certificates::has_certificate;
use crate::endpoints::Port;
use crate::gateway_objects::{BackendTlsPolicy, GROUP, Gateway};
use crate::objects::Objects;

/// What becomes of a policy.
pub(crate) struct PolicyState<'a> {
    pub(crate) policy: &'a BackendTlsPolicy,
    pub(crate) accepted: Result<(), Reason>,
    pub(crate) resolved: Result<(), Reason>,
    /// The Gateways whose routes have a Service that it is about.
    pub(crate) gateways: Vec<&'a Gateway>,
}

/// Looks at all policies.
pub(crate) fn policies<'a>(objects: &'a Objects, analysis: &Analysis<'a>) -> Vec<PolicyState<'a>> {
    let all = objects.backend_tls.values();
    all.map(|policy| look_at(objects, analysis, policy))
        .collect()
}

/// The policy for a port of a Service: the one that names the port, else the one for all ports; the
/// oldest of several.
pub(crate) fn policy_of<'a>(objects: &'a Objects, port: &Port) -> Option<&'a BackendTlsPolicy> {
    let key = (port.namespace.clone(), port.service.clone());
    let spec = objects.services.get(&key)?.spec.as_ref()?;
    let mut ports = spec.ports.iter().flatten();
    let row = ports.find(|row| row.port.to_string() == port.port)?;
    let named = row.name.as_deref().unwrap_or_default();
    let by_section = |section: Option<&str>| {
        let all = objects.backend_tls.values();
        let own = all.filter(|policy| {
            policy.metadata.namespace == port.namespace
                && targets(policy).any(|target| target == (port.service.as_str(), section))
        });
        own.min_by_key(|policy| age(policy))
    };
    by_section(Some(named)).or_else(|| by_section(None))
}

/// The Services that a policy is about, with the name of the port.
fn targets(policy: &BackendTlsPolicy) -> impl Iterator<Item = (&str, Option<&str>)> {
    let targets = policy.spec.target_refs.iter();
    let services = targets.filter(|target| {
        target.group.as_deref().unwrap_or_default().is_empty()
            && target.kind.as_deref() == Some("Service")
    });
    services.map(|target| (target.name.as_str(), target.section_name.as_deref()))
}

fn age(policy: &BackendTlsPolicy) -> (&str, &str) {
    let metadata = &policy.metadata;
    (&metadata.creation_timestamp, &metadata.name)
}

fn look_at<'a>(
    objects: &'a Objects,
    analysis: &Analysis<'a>,
    policy: &'a BackendTlsPolicy,
) -> PolicyState<'a> {
    let found = authorities(objects, policy);
    let mut accepted = match &found {
        Ok(_) => checked(policy),
        Err(reason) => Err(Reason::new("NoValidCACertificate", reason.text.clone())),
    };
    let mut others = objects.backend_tls.values();
    let older = others.find(|other| {
        other.metadata.namespace == policy.metadata.namespace
            && age(other) < age(policy)
            && targets(other).any(|theirs| targets(policy).any(|own| own == theirs))
    });
    if let Some(older) = older {
        let text = format!(
            "its Service belongs to {}, which is older",
            older.metadata.name
        );
        accepted = Err(Reason::new("Conflicted", text));
    }
    PolicyState {
        policy,
        accepted,
        resolved: found.map(drop),
        gateways: gateways(analysis, policy),
    }
}

/// What of a policy the server cannot do.
///
/// # Errors
/// Such a part, and the reason for its condition.
pub(crate) fn checked(policy: &BackendTlsPolicy) -> Result<(), Reason> {
    if policy.spec.validation.subject_alt_names.is_empty() {
        return Ok(());
    }
    let text = "subjectAltNames are not checked by the server: use hostname";
    Err(Reason::new("Invalid", text))
}

/// The authorities that a policy names.
///
/// # Errors
/// One of them is not known, is not there, or cannot be read.
pub(crate) fn authorities(objects: &Objects, policy: &BackendTlsPolicy) -> Result<Vec<u8>, Reason> {
    let validation = &policy.spec.validation;
    if validation.ca_certificate_refs.is_empty() {
        let text = "wellKnownCACertificates are not known: use caCertificateRefs";
        return Err(Reason::new("InvalidCACertificateRef", text));
    }
    let mut all = Vec::new();
    for reference in &validation.ca_certificate_refs {
        let kind = reference.kind.as_deref().unwrap_or("ConfigMap");
        let group = reference.group.as_deref().unwrap_or_default();
        if (group, kind) != ("", "ConfigMap") {
            let text = format!("CAs of kind {kind} are not known");
            return Err(Reason::new("InvalidKind", text));
        }
        let key = (policy.metadata.namespace.clone(), reference.name.clone());
        let map = objects.config_maps.get(&key);
        let wrong = |text: &str| {
            let text = format!("ConfigMap {}/{}: {text}", key.0, key.1);
            Reason::new("InvalidCACertificateRef", text)
        };
        let map = map.ok_or_else(|| wrong("it does not exist"))?;
        let data = map.data.as_ref();
        let text = data.and_then(|data| data.get("ca.crt"));
        let text = text.ok_or_else(|| wrong("it has no key ca.crt"))?;
        if !has_certificate(text.as_bytes()) {
            return Err(wrong("ca.crt has no certificate that can be read"));
        }
        all.extend_from_slice(text.as_bytes());
        all.push(b'\n');
    }
    Ok(all)
}

/// The Gateways with a route to a Service of a policy.
fn gateways<'a>(analysis: &Analysis<'a>, policy: &BackendTlsPolicy) -> Vec<&'a Gateway> {
    let mut found: Vec<usize> = Vec::new();
    for state in &analysis.routes {
        let own = state.route.metadata.namespace.as_str();
        let rules = state.route.spec.rules.iter();
        let mut backends = rules.flat_map(|rule| &rule.backend_refs);
        let is_about = backends.any(|named| {
            let reference = &named.reference;
            let namespace = reference.namespace.as_deref().unwrap_or(own);
            namespace == policy.metadata.namespace
                && targets(policy).any(|(name, _)| name == reference.name)
        });
        if is_about {
            let parents = state.parents.iter();
            let attached = parents.filter(|parent| parent.attached.is_ok());
            found.extend(attached.map(|parent| parent.gateway));
        }
    }
    found.sort_unstable();
    found.dedup();
    let gateways = found.into_iter();
    gateways
        .map(|place| analysis.gateways[place].gateway)
        .collect()
}

/// How a policy's status names a Gateway.
pub(crate) fn ancestor(gateway: &Gateway) -> Json {
    serde_json::json!({
        "group": GROUP,
        "kind": "Gateway",
        "namespace": gateway.metadata.namespace,
        "name": gateway.metadata.name,
    })
}
