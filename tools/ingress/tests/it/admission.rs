//! Admission: a review goes in, an answer comes out. Nothing but what the cluster has already told
//! decides it.

use serde_json::{Value, json};
use turnpike_ingress::{Objects, Options, review};

use crate::bed::{ingress, ingress_in, service};

/// What the cluster has: an Ingress of each of two tenants.
fn cluster(snippets: bool) -> (Objects, Options) {
    let mut objects = Objects::default();
    let texts = service("default", "one", 8001)
        + &service("other", "one", 8002)
        + &dated(&ingress("mine", "mine.test", "", "Prefix / one"), 1)
        + &dated(
            &ingress_in("other", "theirs", "theirs.test", "", "Prefix /a one"),
            2,
        );
    objects.read_text(&texts).unwrap();
    objects.add(json!({
        "kind": "ConfigMap",
        "metadata": {"name": "controller", "namespace": "ingress"},
        "data": {
            "allow-snippet-annotations": snippets.to_string(),
            "annotations-risk-level": "Critical",
        },
    }));
    let options = Options {
        config_map: Some("ingress/controller".to_owned()),
        files: "/nowhere/files".into(),
        temporary: "/nowhere/temporary".into(),
        ..Options::default()
    };
    (objects, options)
}

fn dated(text: &str, day: u32) -> String {
    let created = format!("metadata:\n  creationTimestamp: 2026-01-0{day}T00:00:00Z\n  name:");
    text.replace("metadata:\n  name:", &created)
}

fn object(text: &str) -> Value {
    serde_saphyr::from_str(text.trim_start_matches("---\n")).unwrap()
}

/// The answer to a change from one object to another; null stands for none.
fn asked(objects: &mut Objects, options: &Options, old: Value, new: Value) -> Value {
    let namespace = new["metadata"]["namespace"].as_str().unwrap_or("default");
    let text = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u-1", "namespace": namespace, "object": new, "oldObject": old},
    });
    let answer = review(objects, options, text.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], "u-1");
    answer["response"].clone()
}

fn check(what: &str, response: &Value, expected: &str) {
    let message = response["status"]["message"].as_str().unwrap_or_default();
    if expected.is_empty() {
        assert_eq!(response["allowed"], true, "{what}: {message}");
        assert_eq!(message, "", "{what}");
    } else {
        assert_eq!(response["allowed"], false, "{what}");
        assert_eq!(response["status"]["code"], 403, "{what}");
        assert!(message.contains(expected), "{what}: {message}");
    }
}

/// Host, annotations and paths of a new Ingress of namespace default, and words of the refusal;
/// none if it is taken.
const NEW: &[(&str, &str, &str, &str)] = &[
    ("new.test", "", "Prefix / one", ""),
    ("new.test", "", "Prefix / missing", ""),
    ("theirs.test", "", "Prefix /b one", ""),
    ("theirs.test", "", "Exact /a one", ""),
    (
        "theirs.test",
        "",
        "Prefix /a one",
        "theirs.test/a belongs to Ingress other/theirs, which is older",
    ),
    (
        "mine.test",
        "",
        "Prefix / one",
        "mine.test/ belongs to Ingress default/mine",
    ),
    (
        "new.test",
        "server-alias: theirs.test",
        "Prefix / one",
        "the alias theirs.test is a name of another server already",
    ),
    (
        "theirs.test",
        "canary: \"true\"\ncanary-weight: \"10\"",
        "Prefix /a one",
        "theirs.test/a belongs to another namespace",
    ),
    ("a b", "", "Prefix / one", "\"a b\" is not a host name"),
    ("new.test", "", "Prefix /a\"b one", "ImplementationSpecific"),
    (
        "new.test",
        "proxy-body-size: lots",
        "Prefix / one",
        "annotation proxy-body-size",
    ),
    (
        "new.test",
        "rewrit-target: /",
        "Prefix / one",
        "did you mean \"rewrite-target\"?",
    ),
    (
        "new.test",
        "enable-modsecurity: \"true\"",
        "Prefix / one",
        "put a firewall with these rules before or behind it",
    ),
    (
        "new.test",
        "whitelist-source-range: everywhere",
        "Prefix / one",
        "annotation whitelist-source-range",
    ),
    (
        "new.test",
        "configuration-snippet: return 200;\n",
        "Prefix / one",
        "",
    ),
    (
        "new.test",
        "configuration-snippet: root /etc;\n",
        "Prefix / one",
        "annotation configuration-snippet: line 1: \"root\" is not allowed in annotations",
    ),
    (
        "new.test",
        "configuration-snippet: include /etc/passwd;\n",
        "Prefix / one",
        "include is not allowed in a snippet",
    ),
    (
        "new.test",
        "configuration-snippet: '} server { listen 81;'\n",
        "Prefix / one",
        "unexpected \"}\"",
    ),
    (
        "theirs.test",
        "server-snippet: return 200;\n",
        "Prefix /b one",
        "the host theirs.test is not of this namespace alone",
    ),
];

#[test]
fn a_new_ingress_is_taken_or_refused_with_the_reason() {
    let (mut objects, options) = cluster(true);
    let before = objects.ingresses.clone();
    for (host, annotations, paths, expected) in NEW {
        let new = object(&ingress("new", host, annotations, paths));
        let response = asked(&mut objects, &options, Value::Null, new);
        check(
            &format!("{host} {annotations} {paths}"),
            &response,
            expected,
        );
        assert_eq!(objects.ingresses, before);
    }
    assert!(!options.files.exists() && !options.temporary.exists());
}

#[test]
fn snippets_that_are_switched_off_are_refused() {
    let (mut objects, options) = cluster(false);
    let new = object(&ingress(
        "new",
        "new.test",
        "configuration-snippet: return 200;",
        "Prefix / one",
    ));
    let response = asked(&mut objects, &options, Value::Null, new);
    check("switched off", &response, "allow-snippet-annotations");
}

#[test]
fn an_older_ingress_cannot_take_what_a_younger_one_has() {
    let (mut objects, options) = cluster(true);
    let old = object(&dated(&ingress("mine", "mine.test", "", "Prefix / one"), 1));
    let new = object(&dated(
        &ingress("mine", "theirs.test", "", "Prefix /a one"),
        1,
    ));
    let response = asked(&mut objects, &options, old.clone(), new);
    check(
        "another's path",
        &response,
        "it would take a path from another Ingress: Ingress other/theirs: left out: \
         theirs.test/a belongs to Ingress default/mine, which is older",
    );
    let new = object(&dated(
        &ingress("mine", "mine.test", "", "Prefix /more one"),
        1,
    ));
    check("its own path", &asked(&mut objects, &options, old, new), "");
}

#[test]
fn what_was_wrong_before_is_a_warning() {
    let (mut objects, options) = cluster(true);
    let old = object(&ingress(
        "new",
        "new.test",
        "proxy-body-size: lots",
        "Prefix / one",
    ));
    let new = object(&ingress(
        "new",
        "new.test",
        "proxy-body-size: lots",
        "Prefix /b one",
    ));
    let response = asked(&mut objects, &options, old, new);
    check("the same fault", &response, "");
    let warning = response["warnings"][0].as_str().unwrap();
    assert!(warning.contains("annotation proxy-body-size"), "{warning}");
}

#[test]
fn what_waits_for_another_object_is_a_warning() {
    let (mut objects, options) = cluster(true);
    let annotations = "auth-type: basic\nauth-secret: users";
    let new = object(&ingress("new", "new.test", annotations, "Prefix / one"));
    let response = asked(&mut objects, &options, Value::Null, new);
    check("a Secret that is missing", &response, "");
    let warning = response["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("there is no Secret default/users"),
        "{warning}"
    );
}

/// Objects that no opinion is needed about, or that cannot be read, and words of the refusal.
const OTHERS: &[(&str, &str)] = &[
    ("kind: Pod\nmetadata: {name: p}", ""),
    (
        "kind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: other}",
        "",
    ),
    (
        "kind: Ingress\nmetadata: {name: i}\nspec: {rules: 7}",
        "the object cannot be read",
    ),
    (
        "kind: Ingress\nmetadata: {name: i}\nspec: 7",
        "the object cannot be read",
    ),
    ("kind: Ingress", ""),
];

#[test]
fn other_objects_are_taken_and_broken_ones_are_not() {
    let (mut objects, options) = cluster(true);
    for (text, expected) in OTHERS {
        let response = asked(&mut objects, &options, Value::Null, object(text));
        check(text, &response, expected);
    }
    let gone = json!({"request": {"uid": "u-1", "operation": "DELETE", "object": null}});
    let answer = review(&mut objects, &options, gone.to_string().as_bytes()).unwrap();
    assert!(answer.contains("\"allowed\":true"), "{answer}");
    for text in ["", "{}", "[]", "{\"request\": 7}", "\u{0}"] {
        let error = review(&mut objects, &options, text.as_bytes()).unwrap_err();
        assert!(
            error.starts_with("this is not an AdmissionReview: "),
            "{error}"
        );
    }
}
