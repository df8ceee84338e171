//! Ingresses that contradict each other: the older one has its host and path, whoever comes later
//! is told, and nobody else is touched.

use crate::bed::{Backend, Setting, ingress, ingress_in, service};

fn aged(text: String, day: u32) -> String {
    text.replace(
        "metadata:\n  name:",
        &format!("metadata:\n  creationTimestamp: 2026-01-{day:02}T00:00:00Z\n  name:"),
    )
}

#[test]
fn the_older_ingress_has_a_path() {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let manifests = service("default", "one", one.port)
        + &service("default", "two", two.port)
        + &aged(
            ingress("a-later", "it.test", "", "Prefix / two; Prefix /two two"),
            2,
        )
        + &aged(ingress("b-earlier", "it.test", "", "Prefix / one"), 1)
        + &aged(
            ingress_in("other", "c-foreign", "it.test", "", "Prefix / one"),
            3,
        );
    let bed = Setting::new(manifests).start();
    bed.check("it.test", "GET /", &["backend one"]);
    bed.check("it.test", "GET /two", &["backend two"]);
    let findings: Vec<String> = bed
        .rendering
        .findings
        .iter()
        .map(ToString::to_string)
        .collect();
    let expected = [
        "Ingress default/a-later: left out: it.test/ belongs to Ingress default/b-earlier, which \
         is older",
        "Ingress other/c-foreign: left out: it.test/ belongs to Ingress default/b-earlier, which \
         is older",
    ];
    assert_eq!(findings, expected);
}

/// An Ingress that the server refuses or that cannot be read, and words of the finding about it.
const SPOILED: &[(&str, &str)] = &[
    ("use-regex: \"true\"", "the server refuses it"), // its path is no regular expression
    ("configuration-snippet: return 999 }", "line 1"),
    (
        "configuration-snippet: gzip maybe;",
        "the server refuses it",
    ),
    (
        "configuration-snippet: root /etc;",
        "\"root\" is not allowed in annotations",
    ),
    (
        "upstream-hash-by: $no_such_variable",
        "the server refuses it",
    ),
];

#[test]
fn the_mistake_of_one_is_kept_from_others() {
    let one = Backend::start("one");
    for (annotation, words) in SPOILED {
        let manifests = service("default", "one", one.port)
            + &ingress("good", "good.test", "", "Prefix / one")
            + &ingress(
                "bad",
                "bad.test",
                annotation,
                "ImplementationSpecific /([ one",
            );
        let bed = Setting::new(manifests)
            .key("allow-snippet-annotations", "true")
            .key("annotations-risk-level", "Critical")
            .start();
        bed.check("good.test", "GET /", &["backend one"]);
        bed.check("bad.test", "GET /", &["404 Not Found"]);
        let findings: Vec<String> = bed
            .rendering
            .findings
            .iter()
            .map(ToString::to_string)
            .collect();
        let [finding] = &findings[..] else {
            panic!("{annotation}: {findings:?}");
        };
        let is_right = finding.starts_with("Ingress default/bad: left out: ");
        assert!(
            is_right && finding.contains(words),
            "{annotation}: {finding}"
        );
    }
}

/// Objects that are not good, and words of the finding about each.
const ODD: &[(&str, &str)] = &[
    (
        "kind: Ingress\nmetadata: {name: odd}\nspec: {rules: 7}",
        "the object cannot be read",
    ),
    (
        "kind: Ingress\nmetadata: {name: odd}\nspec: {ingressClassName: nginx, \
         rules: [{host: \"a b\"}]}",
        "\"a b\" is not a host name",
    ),
    (
        "kind: Ingress\nmetadata: {name: odd, annotations: {\
         nginx.ingress.kubernetes.io/rewrit-target: /}}\n\
         spec: {defaultBackend: {service: {name: one, port: {number: 80}}}}",
        "there is no annotation rewrit-target, did you mean \"rewrite-target\"?",
    ),
];

#[test]
fn odd_objects_are_named_and_hide_no_others() {
    let one = Backend::start("one");
    for (text, words) in ODD {
        let manifests = service("default", "one", one.port)
            + &ingress("good", "good.test", "", "Prefix / one")
            + &format!("---\n{text}\n");
        let rendering = Setting::new(manifests).render();
        let findings: Vec<String> = rendering.findings.iter().map(ToString::to_string).collect();
        assert!(
            findings.iter().any(|finding| finding.contains(words)),
            "{words}: {findings:?}"
        );
        assert!(rendering.configuration.contains("good.test"), "{words}");
    }
}
