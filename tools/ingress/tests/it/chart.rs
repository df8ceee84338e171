//! The Helm chart: with the values that it comes with, it is the plain manifests. Its templates use
//! values, the release's namespace and `toJson` only, which is all that is rendered here.

use serde_json::Value;

const TEMPLATE: &str =
    include_str!("../../../../contrib/kubernetes/chart/templates/controller.yaml");
const VALUES: &str = include_str!("../../../../contrib/kubernetes/chart/values.yaml");
const CHART: &str = include_str!("../../../../contrib/kubernetes/chart/Chart.yaml");
const MANIFESTS: &str = include_str!("../../../../contrib/kubernetes/turnpike-ingress.yaml");

/// The namespace of the plain manifests.
const NAMESPACE: &str = "turnpike-ingress";

fn documents(text: &str) -> Vec<Value> {
    let texts = text.split("\n---\n");
    texts
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}

/// A template with its expressions replaced, and the names of the values that were used.
fn rendered(template: &str, values: &Value) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut used = Vec::new();
    let mut parts = template.split("{{ ");
    text.push_str(parts.next().unwrap());
    for part in parts {
        let (expression, rest) = part.split_once(" }}").unwrap();
        let (is_json, path) = match expression.strip_prefix("toJson ") {
            Some(path) => (true, path),
            None => (false, expression),
        };
        if path == ".Release.Namespace" {
            text.push_str(NAMESPACE);
        } else {
            let name = path.strip_prefix(".Values.").unwrap();
            let value = &values[name];
            assert!(!value.is_null(), "no value {name}");
            match value {
                Value::String(value) if !is_json => text.push_str(value),
                value => text.push_str(&value.to_string()),
            }
            used.push(name.to_owned());
        }
        text.push_str(rest);
    }
    (text, used)
}

#[test]
fn the_chart_is_the_plain_manifests() {
    let values: Value = serde_saphyr::from_str(VALUES).unwrap();
    let (text, used) = rendered(TEMPLATE, &values);
    let mut plain = documents(MANIFESTS);
    plain.retain(|document| document["kind"] != "Namespace"); // Helm makes it
    assert_eq!(documents(&text), plain);
    for name in values.as_object().unwrap().keys() {
        assert!(used.contains(name), "value {name} is not used");
    }
    let chart: Value = serde_saphyr::from_str(CHART).unwrap();
    assert_eq!(chart["name"], "turnpike-ingress");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}
