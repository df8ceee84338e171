//! The manifests that install the controller: they are what Kubernetes takes, name flags that
//! exist, and give the rights that are used.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::IngressClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use turnpike_ingress::{Options, SETTINGS};

const MANIFESTS: &str = include_str!("../../../../contrib/kubernetes/turnpike-ingress.yaml");

fn documents() -> Vec<Value> {
    let texts = MANIFESTS.split("\n---\n");
    texts
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}

fn of_kind(kind: &str) -> Value {
    let mut documents = documents().into_iter();
    documents.find(|document| document["kind"] == kind).unwrap()
}

/// Reads a value as its type, and writes it again: a field that the type does not have is lost.
fn read_again<T: DeserializeOwned + Serialize>(value: &Value) -> Value {
    let typed: T = serde_json::from_value(value.clone()).unwrap();
    serde_json::to_value(typed).unwrap()
}

#[test]
fn every_field_is_known() {
    for document in documents() {
        let again = match document["kind"].as_str().unwrap() {
            "Namespace" => read_again::<Namespace>(&document),
            "ServiceAccount" => read_again::<ServiceAccount>(&document),
            "ClusterRole" => read_again::<ClusterRole>(&document),
            "ClusterRoleBinding" => read_again::<ClusterRoleBinding>(&document),
            "Role" => read_again::<Role>(&document),
            "RoleBinding" => read_again::<RoleBinding>(&document),
            "IngressClass" => read_again::<IngressClass>(&document),
            "ConfigMap" => read_again::<ConfigMap>(&document),
            "Deployment" => read_again::<Deployment>(&document),
            "Service" => read_again::<Service>(&document),
            "PodDisruptionBudget" => read_again::<PodDisruptionBudget>(&document),
            "HorizontalPodAutoscaler" => read_again::<HorizontalPodAutoscaler>(&document),
            "ValidatingWebhookConfiguration" => {
                read_again::<ValidatingWebhookConfiguration>(&document)
            }
            kind => panic!("nobody checks a {kind}"),
        };
        assert_eq!(again, document);
    }
}

#[test]
fn flags_and_keys_exist_and_the_container_has_least_rights() {
    let deployment = of_kind("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for argument in container["args"].as_array().unwrap() {
        let argument = argument.as_str().unwrap();
        if argument.starts_with("--server=") {
            continue;
        }
        let mut notes = Vec::new();
        Options::default().take(argument, None, &mut notes).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
    }
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let rights = &container["securityContext"];
    assert_eq!(rights["readOnlyRootFilesystem"], true);
    assert_eq!(rights["allowPrivilegeEscalation"], false);
    assert_eq!(rights["capabilities"]["drop"][0], "ALL");
    for name in of_kind("ConfigMap")["data"].as_object().unwrap().keys() {
        assert!(SETTINGS.iter().any(|row| row.name == name), "{name}");
    }
}

/// What the controller asks of the API server.
const RIGHTS: &[(&str, &[&str], &[&str])] = &[
    (
        "",
        &["services", "secrets", "configmaps", "namespaces"],
        &["list", "watch"],
    ),
    ("discovery.k8s.io", &["endpointslices"], &["list", "watch"]),
    (
        "networking.k8s.io",
        &["ingresses", "ingressclasses"],
        &["list", "watch"],
    ),
    ("networking.k8s.io", &["ingresses/status"], &["patch"]),
    (
        "gateway.networking.k8s.io",
        &[
            "gatewayclasses",
            "gateways",
            "httproutes",
            "grpcroutes",
            "tlsroutes",
            "tcproutes",
            "udproutes",
            "referencegrants",
            "backendtlspolicies",
        ],
        &["list", "watch"],
    ),
    (
        "gateway.networking.k8s.io",
        &[
            "gatewayclasses/status",
            "gateways/status",
            "httproutes/status",
            "grpcroutes/status",
            "tlsroutes/status",
            "tcproutes/status",
            "udproutes/status",
            "backendtlspolicies/status",
        ],
        &["patch"],
    ),
    ("events.k8s.io", &["events"], &["create"]),
];

#[test]
fn the_role_has_what_is_used_and_no_more() {
    let role = of_kind("ClusterRole");
    let rules: Vec<Value> = RIGHTS
        .iter()
        .map(|(group, resources, verbs)| {
            serde_json::json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
        })
        .collect();
    let (own, others) = role["rules"].as_array().unwrap().split_last().unwrap();
    assert_eq!(others, rules);
    // The webhook's, by its name only.
    assert_eq!(own["resources"][0], "validatingwebhookconfigurations");
    assert_eq!(own["verbs"], serde_json::json!(["get", "update"]));
    let name = Options::default().cluster.webhook_name;
    assert_eq!(own["resourceNames"], serde_json::json!([name]));
    for rule in of_kind("Role")["rules"].as_array().unwrap() {
        let is_named = !rule["resourceNames"].is_null();
        let expected: &[&str] = if is_named {
            &["get", "update"]
        } else if rule["resources"][0] == "services" {
            &["create", "patch", "delete"] // those of Gateways
        } else {
            &["create"]
        };
        assert_eq!(rule["verbs"], serde_json::json!(expected));
    }
}

#[test]
fn the_webhook_has_one_name() {
    let webhook = of_kind("ValidatingWebhookConfiguration");
    let name = Options::default().cluster.webhook_name;
    assert_eq!(webhook["metadata"]["name"], *name);
    let called = &webhook["webhooks"][0]["clientConfig"]["service"];
    assert_eq!(called["name"], *name);
    assert!(documents().iter().any(|document| {
        let is_service = document["kind"] == "Service";
        is_service && document["metadata"]["name"] == *name
    }));
}
