//! How much a review looks at.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::neighbours;
use crate::objects::Objects;
use crate::options::Options;
use crate::rules;

/// Names of an Ingress (its host and an alias), and how many others it is rendered with.
const CASES: &[(&str, &str, usize)] = &[
    ("h7.test", "", 1),
    ("H7.test", "", 1),
    ("new.test", "", 0),
    ("new.test", "h7.test,h8.test", 2),
    ("www.h7.test", "", 1), // the other one redirects from it
    ("h9.alias", "", 1),
    ("", "", 0),
];

#[test]
fn what_is_rendered_does_not_grow_with_the_cluster() {
    let options = Options::default();
    let ingress = |name: &str, host: &str, alias: &str, www: &str| {
        let prefix = &options.annotations_prefix;
        let mut annotations = serde_json::Map::new();
        annotations.insert(format!("{prefix}/server-alias"), alias.into());
        if !www.is_empty() {
            annotations.insert(format!("{prefix}/from-to-www-redirect"), www.into());
        }
        let host = (!host.is_empty()).then_some(host);
        json!({
            "kind": "Ingress",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"rules": [{"host": host, "http": {"paths": []}}]},
        })
    };
    let mut objects = Objects::default();
    for number in 0..5000 {
        let host = format!("h{number}.test");
        let alias = format!("h{number}.alias");
        objects.add(ingress(&format!("i{number}"), &host, &alias, "true"));
    }
    for (host, alias, expected) in CASES {
        let mut one = Objects::default();
        one.add(ingress("new", host, alias, ""));
        let (key, new) = one.ingresses.pop_first().unwrap();
        let concerned = rules::names(&new, &options);
        let found = neighbours(&objects.ingresses, &key, &concerned, &options);
        assert_eq!(found.len(), *expected, "{host} {alias}");
    }
}
