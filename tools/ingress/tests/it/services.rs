//! Services: which servers are behind a rule, and what happens without one.

use crate::bed::{Backend, Setting, assert_has, ingress, service};

/// A Service with several endpoints: address, ready, serving, terminating, zone.
type Endpoint = (&'static str, bool, bool, bool, &'static str);

fn with_endpoints(name: &str, annotations: &str, endpoints: &[Endpoint]) -> String {
    let mut text = format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: default, \
         annotations: {{{annotations}}}}}\nspec:\n  clusterIP: None\n  ports: [{{port: 80}}]\n\
         ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-1, \
         namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nports: [{{port: 8080}}]\nendpoints:\n"
    );
    for (address, ready, serving, terminating, zone) in endpoints {
        text += &format!(
            "- {{addresses: [\"{address}\"], conditions: {{ready: {ready}, serving: {serving}, \
             terminating: {terminating}}}, hints: {{forZones: [{{name: {zone}}}]}}}}\n"
        );
    }
    text
}

/// A name, annotations of the Service, endpoints, and what the configuration has.
const CHOICES: &[(&str, &str, &[Endpoint], &[&str])] = &[
    (
        "ready",
        "",
        &[
            ("10.0.0.1", true, true, false, "a"),
            ("10.0.0.2", false, false, false, "a"),
            ("10.0.0.3", false, true, true, "a"),
        ],
        &["server 10.0.0.1:8080 ", "!10.0.0.2", "!10.0.0.3"],
    ),
    (
        "terminating",
        "",
        &[
            ("10.0.1.2", false, false, true, "a"),
            ("10.0.1.3", false, true, true, "a"),
        ],
        &["server 10.0.1.3:8080 ", "!10.0.1.2"],
    ),
    (
        "zoned",
        "service.kubernetes.io/topology-mode: Auto",
        &[
            ("10.0.2.1", true, true, false, "a"),
            ("10.0.2.2", true, true, false, "b"),
        ],
        &["server 10.0.2.2:8080 ", "!10.0.2.1"],
    ),
    (
        "away",
        "",
        &[("10.0.3.1", false, false, false, "a")],
        &["!10.0.3.1"],
    ),
];

#[test]
fn endpoints_are_chosen_by_their_conditions_and_zones() {
    for (name, annotations, endpoints, expected) in CHOICES {
        let manifests = with_endpoints(name, annotations, endpoints)
            + &ingress(name, "it.test", "", &format!("Prefix / {name}"));
        let mut setting = Setting::new(manifests);
        setting.options.zone = Some("b".to_owned());
        let rendering = setting.render();
        assert_has(name, &rendering.configuration, expected, &rendering);
    }
}

#[test]
fn rules_find_services_by_number_name_and_target() {
    let one = Backend::start("one");
    let mut manifests = service("default", "one", one.port);
    let ports = [
        ("number", "number: 80".to_owned()),
        ("name", "name: web".to_owned()),
        ("target", format!("number: {}", one.port)),
        ("wrong", "number: 81".to_owned()),
    ];
    for (host, port) in ports {
        let text = ingress(host, &format!("{host}.test"), "", "Prefix / one");
        manifests += &text.replace("number: 80", &port);
    }
    manifests += &ingress("absent", "absent.test", "", "Prefix / nobody");
    let bed = Setting::new(manifests).start();
    for host in ["number.test", "name.test", "target.test"] {
        bed.check(host, "GET /", &["200 Said", "backend one"]);
    }
    for host in ["wrong.test", "absent.test"] {
        bed.check(host, "GET /", &["503 Service"]);
    }
    let findings: String = bed
        .rendering
        .findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    for expected in [
        "Ingress default/absent: note: there is no Service default/nobody: the answer is 503",
        "Ingress default/wrong: note: Service one has no port 81: the answer is 503",
    ] {
        assert!(findings.contains(expected), "{findings}");
    }
}

#[test]
fn external_names_and_default_backends_are_passed_to() {
    let (one, two) = (Backend::start("one"), Backend::start("default"));
    let manifests = service("default", "one", one.port)
        + &service("ingress", "fallback", two.port)
        + &format!(
            "---\nkind: Service\nmetadata: {{name: outside}}\nspec:\n  type: ExternalName\n  \
             externalName: 127.0.0.1\n  ports: [{{port: {}}}]\n",
            one.port
        )
        + &ingress("outside", "outside.test", "", "Prefix / outside")
            .replace("number: 80", &format!("number: {}", one.port))
        + &ingress("some", "some.test", "", "Prefix /some one");
    let mut setting = Setting::new(manifests);
    setting.options.default_backend = Some("ingress/fallback".to_owned());
    let bed = setting.start();
    bed.check("outside.test", "GET /", &["backend one"]);
    bed.check("nobody.test", "GET /", &["backend default"]);
    bed.check("some.test", "GET /other", &["backend default"]);
}
