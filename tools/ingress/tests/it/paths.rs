//! Hosts and paths: which location a request comes to.

use crate::bed::{Backend, Setting, ingress, service};

/// Ingresses: name, host, annotations, paths.
const INGRESSES: &[(&str, &str, &str, &str)] = &[
    (
        "plain",
        "plain.test",
        "",
        "Prefix /a one; Exact /a two; Prefix /b/ one; Exact /c one",
    ),
    (
        "specific",
        "specific.test",
        "",
        "ImplementationSpecific /a one; ImplementationSpecific /ab two",
    ),
    (
        "patterns",
        "patterns.test",
        "use-regex: \"true\"",
        "ImplementationSpecific /x/\\d+ one; ImplementationSpecific /x/.* two",
    ),
    ("beside", "patterns.test", "", "Exact /y two"),
    (
        "rewriting",
        "rewriting.test",
        "rewrite-target: /$2",
        "ImplementationSpecific /app(/|$)(.*) one",
    ),
    ("wild", "*.wild.test", "", "Prefix / one"),
    ("inner", "inner.wild.test", "", "Prefix / two"),
    ("anything", "", "", "Prefix /any one"),
    (
        "aliased",
        "aliased.test",
        "server-alias: \"other.test,~^n\\\\d+\\\\.test$\"",
        "Prefix / two",
    ),
];

/// A host, a target, and what the response has.
const ROWS: &[(&str, &str, &[&str])] = &[
    ("plain.test", "/a", &["backend two"]),
    ("plain.test", "/a/", &["backend one", "GET /a/ HTTP/1.1"]),
    (
        "plain.test",
        "/a/deep?q=1",
        &["backend one", "GET /a/deep?q=1 HTTP/1.1"],
    ),
    ("plain.test", "/ab", &["404 Not Found"]),
    ("plain.test", "/b/x", &["backend one"]),
    (
        "plain.test",
        "/b",
        &["301 ", "Location: http://plain.test/b/"],
    ),
    ("plain.test", "/c", &["backend one"]),
    ("plain.test", "/c/", &["404 Not Found"]),
    (
        "PLAIN.test:8080",
        "/c",
        &["backend one", "Host: PLAIN.test:8080"],
    ),
    ("specific.test", "/axyz", &["backend one"]),
    ("specific.test", "/abc", &["backend two"]),
    ("patterns.test", "/x/12", &["backend one"]),
    ("patterns.test", "/X/word", &["backend two"]),
    ("patterns.test", "/y/and-more", &["backend two"]),
    (
        "rewriting.test",
        "/app/deep/er?x=1",
        &["backend one", "GET /deep/er?x=1 HTTP/1.1"],
    ),
    ("rewriting.test", "/app", &["GET / HTTP/1.1"]),
    ("rewriting.test", "/other", &["404 Not Found"]),
    ("a.wild.test", "/", &["backend one"]),
    ("a.b.wild.test", "/", &["404 Not Found"]),
    ("wild.test", "/", &["404 Not Found"]),
    ("inner.wild.test", "/", &["backend two"]),
    ("unknown.test", "/any/thing", &["backend one"]),
    ("unknown.test", "/", &["404 Not Found"]),
    ("unknown.test", "/healthz", &["200 OK", "!backend"]),
    ("other.test", "/", &["backend two"]),
    ("n12.test", "/", &["backend two"]),
];

#[test]
fn requests_come_to_the_locations_of_ingress_nginx() {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let mut manifests = service("default", "one", one.port) + &service("default", "two", two.port);
    for (name, host, annotations, paths) in INGRESSES {
        manifests += &ingress(name, host, annotations, paths);
    }
    let bed = Setting::new(manifests).start();
    for (host, target, expected) in ROWS {
        bed.check(host, &format!("GET {target}"), expected);
    }
}

/// A path, its type, and the words about it; none if it is good.
const CHECKED: &[(&str, &str, Option<&str>)] = &[
    ("/good/path-1_2.3", "Prefix", None),
    (
        "/with(pattern)",
        "Prefix",
        Some("cannot be used with pathType Prefix"),
    ),
    (
        "/with(pattern)",
        "Exact",
        Some("cannot be used with pathType Exact"),
    ),
    ("/with(pattern)", "ImplementationSpecific", None),
    (
        "relative",
        "ImplementationSpecific",
        Some("does not start with /"),
    ),
    ("/quote\" {", "ImplementationSpecific", None),
    (
        "/line\\nend",
        "ImplementationSpecific",
        Some("has control characters"),
    ),
    ("/$http_host", "ImplementationSpecific", None),
];

#[test]
fn paths_are_checked_and_never_escape() {
    let one = Backend::start("one");
    for (path, kind, expected) in CHECKED {
        let manifest = format!(
            "{}---\nkind: Ingress\nmetadata: {{name: it}}\nspec:\n  rules:\n  - host: it.test\n    \
             http:\n      paths:\n      - path: \"{}\"\n        pathType: {kind}\n        \
             backend: {{service: {{name: one, port: {{number: 80}}}}}}\n",
            service("default", "one", one.port),
            path.replace('"', "\\\""),
        );
        let loose = Setting::new(manifest.clone())
            .key("strict-validate-path-type", "false")
            .render();
        let refused = "cannot be used with pathType";
        assert!(
            !loose
                .findings
                .iter()
                .any(|finding| finding.text.contains(refused)),
            "{path}"
        );
        let rendering = Setting::new(manifest).render();
        let texts: Vec<String> = rendering.findings.iter().map(ToString::to_string).collect();
        match expected {
            Some(words) => assert!(
                texts.iter().any(|text| text.contains(words)),
                "{path}: {texts:?}"
            ),
            None => assert!(texts.is_empty(), "{path}: {texts:?}"),
        }
    }
}
