//! An attack by tenants on a running controller: more than a hundred hostile manifests of one
//! namespace. Each gets an event, the last good configuration stays in use, and the routes of
//! another namespace stay as they were, under endpoints that flap as well.

use turnpike_testkit::{ports, wait_for};

use crate::api_server::ApiServer;
use crate::bed::{Backend, ingress_in, service};
use crate::cluster::{Controller, cluster};
use crate::hostile::{LOCATION, SERVER, VALUES, snippet};

/// The namespace of the attack.
const OWN: &str = "evil";

/// The name of an Ingress in a row, and of its host.
const NAME: &str = "NAME";

/// Annotations and paths of an Ingress for a host, and words of the event about it.
const INGRESSES: &[(&str, &str, &str, &str)] = &[
    (
        "good.test",
        "",
        "Prefix / one",
        "good.test/ belongs to Ingress victim/good",
    ),
    (
        "good.test",
        "",
        "Exact /deep one",
        "good.test/deep belongs to Ingress victim/good",
    ),
    ("a b", "", "Prefix / one", "\"a b\" is not a host name"),
    ("a;b", "", "Prefix / one", "is not a host name"),
    ("a{b", "", "Prefix / one", "is not a host name"),
    ("*", "", "Prefix / one", "is not a host name"),
    ("*.*.test", "", "Prefix / one", "is not a host name"),
    ("~^good.test$", "", "Prefix / one", "is not a host name"),
    (
        "NAME.test",
        "server-alias: good.test",
        "Prefix / one",
        "good.test",
    ),
    (
        "NAME.test",
        "canary: maybe",
        "Prefix / one",
        "the value is not \"true\" or \"false\"",
    ),
    (
        "NAME.test",
        "use-regex: \"true\"",
        "ImplementationSpecific /([ one",
        "the server refuses it",
    ),
    (
        "NAME.test",
        "use-regex: \"true\"",
        "ImplementationSpecific /(?<x one",
        "the server refuses",
    ),
    (
        "NAME.test",
        "upstream-hash-by: $no_such",
        "Prefix / one",
        "the server refuses it",
    ),
    (
        "NAME.test",
        "no-such: x",
        "Prefix / one",
        "there is no annotation no-such",
    ),
    (
        "NAME.test",
        "rewrit-target: /",
        "Prefix / one",
        "did you mean \"rewrite-target\"?",
    ),
    (
        "NAME.test",
        "auth-type: digest\nauth-secret: users",
        "Prefix / one",
        "auth-type",
    ),
    (
        "NAME.test",
        "auth-type: basic\nauth-secret: none",
        "Prefix / one",
        "no Secret evil/none",
    ),
    (
        "NAME.test",
        "auth-type: basic\nauth-secret: victim/users",
        "Prefix / one",
        "auth-secret",
    ),
    (
        "NAME.test",
        "auth-tls-secret: none",
        "Prefix / one",
        "auth-tls-secret",
    ),
    (
        "NAME.test",
        "auth-tls-secret: victim/users",
        "Prefix / one",
        "auth-tls-secret",
    ),
    (
        "NAME.test",
        "backend-protocol: HTTPS\nproxy-ssl-secret: victim/users",
        "Prefix / one",
        "proxy-ssl-secret",
    ),
    (
        "NAME.test",
        "whitelist-source-range: 10.0.0.0/99",
        "Prefix / one",
        "whitelist-source-range",
    ),
    (
        "NAME.test",
        "denylist-source-range: x;y",
        "Prefix / one",
        "denylist-source-range",
    ),
    (
        "NAME.test",
        "limit-connections: many",
        "Prefix / one",
        "limit-connections",
    ),
    (
        "NAME.test",
        "backend-protocol: GOPHER",
        "Prefix / one",
        "backend-protocol",
    ),
    (
        "NAME.test",
        "enable-modsecurity: \"true\"",
        "Prefix / one",
        "ModSecurity",
    ),
    (
        "NAME.test",
        "custom-http-errors: '404,x'",
        "Prefix / one",
        "custom-http-errors",
    ),
    (
        "NAME.test",
        "custom-headers: victim/headers",
        "Prefix / one",
        "custom-headers",
    ),
];

/// Other objects, and words about them in the controller's log.
const OBJECTS: &[(&str, &str)] = &[
    (
        "kind: Ingress\nmetadata: {name: NAME, namespace: evil}\nspec: {ingressClassName: nginx, \
         defaultBackend: {resource: {apiGroup: x, kind: Bucket, name: data}}}",
        "",
    ),
    (
        "kind: Ingress\nmetadata: {name: NAME, namespace: evil}\nspec: {ingressClassName: nginx, \
         tls: [{hosts: [NAME.test], secretName: garbage}], rules: [{host: NAME.test, http: \
         {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: \
         80}}}}]}}]}",
        "since Secret evil/garbage has no certificate",
    ),
    (
        "kind: Ingress\nmetadata: {name: NAME, namespace: evil}\nspec: {ingressClassName: nginx, \
         tls: [{hosts: [good.test], secretName: none}], rules: [{host: NAME.test, http: \
         {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: \
         80}}}}]}}]}",
        "",
    ),
    (
        "kind: Secret\nmetadata: {name: garbage, namespace: evil}\n\
         data: {tls.crt: AAAA, tls.key: AA==}",
        "",
    ),
    (
        "kind: Gateway\nmetadata: {name: NAME, namespace: evil}\nspec: {gatewayClassName: ours, \
         listeners: [{name: a, port: 80, protocol: 'HTTP; root /'}]}",
        "protocol HTTP; root / is not served",
    ),
    (
        "kind: Gateway\nmetadata: {name: NAME, namespace: evil}\nspec: {gatewayClassName: ours, \
         listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: users, \
         namespace: victim}]}}]}",
        "no ReferenceGrant allows Secret victim/users",
    ),
    (
        "kind: HTTPRoute\nmetadata: {name: NAME, namespace: evil}\nspec: {parentRefs: [{name: \
         outer, namespace: victim}], hostnames: [good.test], rules: [{backendRefs: [{name: one, \
         port: 80}]}]}",
        "accepts routes of this kind and namespace",
    ),
];

/// The bytes of the largest ConfigMap that the API server takes.
const CONFIG_MAP_BYTES: usize = 1 << 20;

fn numbered(text: &str, number: usize) -> String {
    text.replace(NAME, &format!("n{number}"))
}

/// An Ingress that was made in a year.
fn dated(ingress: &str, year: u32) -> String {
    let date = format!("metadata:\n  creationTimestamp: {year}-01-01T00:00:00Z\n");
    ingress.replacen("metadata:\n", &date, 1)
}

/// The hostile manifests, with the name of each Ingress and words of the event about it.
fn hostile() -> (String, Vec<(String, String)>) {
    let mut text = String::new();
    let mut expected = Vec::new();
    let mut add = |host: &str, annotations: &str, paths: &str, words: &str| {
        let name = format!("n{}", expected.len());
        let host = host.replace(NAME, &name);
        let ingress = ingress_in(OWN, &name, &host, annotations, paths);
        text.push_str(&dated(&ingress, 2021));
        expected.push((name, words.to_owned()));
    };
    for (host, annotations, paths, words) in INGRESSES {
        add(host, annotations, paths, words);
    }
    for (name, rows) in [
        ("configuration-snippet", LOCATION),
        ("server-snippet", SERVER),
    ] {
        for (row, words) in rows {
            add("NAME.test", &snippet(name, row), "Prefix / one", words);
        }
    }
    for (annotations, words) in VALUES {
        if let Some(words) = words {
            add("NAME.test", annotations, "Prefix / one", words);
        }
    }
    (text, expected)
}

/// What another tenant has, and what the attacker has beside what is hostile: an Ingress with the
/// longest host, and the largest ConfigMap.
fn others(one: &Backend, two: &Backend, long_host: &str) -> String {
    let snippets = "allow-snippet-annotations: \"true\", annotations-risk-level: Critical, ";
    let base = cluster("/dev/null", one).replace("data: {", &format!("data: {{{snippets}"));
    let paths = "Prefix / one; Exact /deep one";
    let good = ingress_in("victim", "good", "good.test", "", paths);
    let victim = service("victim", "one", one.port)
        + &dated(&good, 2020)
        + "---\nkind: Secret\nmetadata: {name: users, namespace: victim}\ndata: {auth: YTpi}\n"
        + "---\nkind: GatewayClass\nmetadata: {name: ours}\n"
        + "spec: {controllerName: turnpike/gateway}\n"
        + "---\nkind: Gateway\nmetadata: {name: outer, namespace: victim}\n"
        + "spec: {gatewayClassName: ours, listeners: [{name: a, port: 80, protocol: HTTP}]}\n";
    let map = "x".repeat(CONFIG_MAP_BYTES);
    base + &victim
        + &service(OWN, "one", two.port)
        + &ingress_in(OWN, "long", long_host, "", "Prefix / one")
        + &format!(
            "---\nkind: ConfigMap\nmetadata: {{name: big, namespace: evil}}\n\
             data: {{X-Big: {map}}}\n"
        )
}

/// Waits until each is told of.
fn check_told(api: &ApiServer, controller: &Controller, expected: &[(String, String)]) {
    for (name, words) in expected {
        let own = || {
            let events = api.events().into_iter().filter(|(about, _)| about == name);
            events.map(|(_, note)| note).collect::<Vec<_>>()
        };
        let told = wait_for(|| own().iter().any(|note| note.contains(words)).then_some(()));
        let log = || controller.log();
        assert!(told.is_some(), "{name}: {words}: {:?}\n{}", own(), log());
    }
    for (_, words) in OBJECTS {
        let told = wait_for(|| controller.log().contains(words).then_some(()));
        assert!(told.is_some(), "{words}\n{}", controller.log());
    }
}

#[test]
fn a_hundred_hostile_manifests_touch_no_other_tenant() {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let api = ApiServer::start();
    let label = "a".repeat(63);
    let long_host = format!("{label}.{label}.{label}.{}.t", "b".repeat(59));
    api.put(&others(&one, &two, &long_host));
    let own_ports = [(); 4].map(|()| ports::reserve().unwrap().to_string());
    let flags = [format!("--gateway-ports={}", own_ports.join(","))];
    let controller = Controller::start_with(&api, &flags);
    controller.wait("good.test", "backend one");

    let (ingresses, expected) = hostile();
    assert!(expected.len() + OBJECTS.len() > 100, "{}", expected.len());
    api.put(&ingresses);
    for (number, (object, _)) in OBJECTS.iter().enumerate() {
        api.put(&format!("---\n{}\n", numbered(object, 1000 + number)));
    }
    check_told(&api, &controller, &expected);
    // Those that are not wholly wrong are served.
    controller.wait("n1001.test", "308 ");
    controller.wait("n1002.test", "backend two");
    controller.wait("good.test", "backend one");
    let deep = Controller::ask(controller.http_port, "good.test", "/deep");
    assert!(deep.contains("backend one"), "{deep}");
    controller.wait(&long_host, "backend two");
    let configuration = controller.configuration();
    for line in configuration.lines().map(str::trim) {
        let mut starts = ["root ", "alias ", "include ", "load_module "].iter();
        assert!(!starts.any(|start| line.starts_with(start)), "{line}");
    }

    // Endpoints that flap disturb nobody else, and cost no reload once all else is in force.
    let is_quiet = wait_for(|| {
        let reloads = controller.metric("reloads");
        for (words, port) in [("backend one", one.port), ("backend two", two.port)] {
            api.put(&service(OWN, "one", port));
            let answer = Controller::ask(controller.http_port, "good.test", "/");
            assert!(answer.contains("backend one"), "{answer}");
            controller.wait(&long_host, words);
        }
        (controller.metric("reloads") == reloads).then_some(())
    });
    assert!(is_quiet.is_some(), "{}", controller.log());
}
