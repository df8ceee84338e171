//! Gateways in a cluster: each has a Service with ports of the container that no other has, and
//! every object is told what becomes of it.

use serde_json::{Value, json};
use turnpike_testkit::{ports, wait_for};

use crate::api_server::ApiServer;
use crate::bed::{Backend, service};
use crate::cluster::{Controller, cluster};

/// A class of ours and one of another, a Gateway of each, and routes: one that is good, one for a
/// listener that is not there, one whose backend is not there, one whose host nobody has.
const OBJECTS: &str = "---
kind: GatewayClass
metadata: {name: ours, generation: 1}
spec: {controllerName: turnpike/gateway}
---
kind: GatewayClass
metadata: {name: theirs, generation: 1}
spec: {controllerName: example.com/other}
---
kind: Gateway
metadata: {name: outer, generation: 3}
spec:
  gatewayClassName: ours
  listeners:
  - {name: plain, port: 80, protocol: HTTP, hostname: '*.first.test'}
  - {name: odd, port: 81, protocol: ODD}
  - {name: bare, port: 443, protocol: HTTPS, hostname: bare.test,
     tls: {certificateRefs: [{name: none}]}}
  - {name: labelled, port: 80, protocol: HTTP, hostname: labelled.test,
     allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}}
---
kind: Gateway
metadata: {name: foreign, generation: 1}
spec:
  gatewayClassName: theirs
  listeners: [{name: plain, port: 80, protocol: HTTP}]
---
kind: Namespace
metadata: {name: red, labels: {team: red}}
---
kind: HTTPRoute
metadata: {name: good, generation: 2}
spec:
  parentRefs: [{name: outer, sectionName: plain}]
  hostnames: [a.first.test]
  rules: [{backendRefs: [{name: one, port: 80}]}]
---
kind: HTTPRoute
metadata: {name: elsewhere, generation: 1}
spec:
  parentRefs: [{name: outer, sectionName: absent}, {name: foreign}]
  rules: [{backendRefs: [{name: one, port: 80}]}]
---
kind: HTTPRoute
metadata: {name: broken, generation: 1}
spec:
  parentRefs: [{name: outer, port: 80}]
  hostnames: [b.first.test]
  rules: [{backendRefs: [{name: absent, port: 80}]}]
---
kind: HTTPRoute
metadata: {name: lost, generation: 1}
spec:
  parentRefs: [{name: outer}]
  hostnames: [nobody.test]
  rules: [{backendRefs: [{name: one, port: 80}]}]
---
kind: HTTPRoute
metadata: {name: red, namespace: red, generation: 1}
spec:
  parentRefs: [{name: outer, namespace: default}]
  hostnames: [labelled.test]
  rules: [{backendRefs: [{name: one, namespace: default, port: 80}]}]
";

/// A route, and words of its conditions: the type, the status and the reason of each.
const ROUTES: &[(&str, &[&str])] = &[
    (
        "good",
        &["Accepted True Accepted", "ResolvedRefs True ResolvedRefs"],
    ),
    (
        "elsewhere",
        &[
            "Accepted False NoMatchingParent",
            "ResolvedRefs True ResolvedRefs",
        ],
    ),
    (
        "broken",
        &[
            "Accepted True Accepted",
            "ResolvedRefs False BackendNotFound",
        ],
    ),
    (
        "lost",
        &[
            "Accepted False NoMatchingListenerHostname",
            "ResolvedRefs True ResolvedRefs",
        ],
    ),
];

/// A listener, its attached routes, and words of its conditions.
const LISTENERS: &[(&str, u64, &[&str])] = &[
    (
        "plain",
        2,
        &[
            "Accepted True",
            "Conflicted False",
            "Programmed True",
            "ResolvedRefs True",
        ],
    ),
    (
        "odd",
        0,
        &[
            "Accepted False UnsupportedProtocol",
            "Programmed False Invalid",
        ],
    ),
    (
        "bare",
        0,
        &[
            "ResolvedRefs False InvalidCertificateRef",
            "Programmed False Invalid",
        ],
    ),
    ("labelled", 1, &["Accepted True", "Programmed True"]),
];

/// The conditions as words, if they are about the object's newest generation.
fn words(object: &Value, conditions: &Value) -> Vec<String> {
    let conditions = conditions.as_array().into_iter().flatten();
    let newest = conditions
        .filter(|condition| condition["observedGeneration"] == object["metadata"]["generation"]);
    newest
        .map(|condition| {
            let part = |name: &str| condition[name].as_str().unwrap_or_default();
            format!("{} {} {}", part("type"), part("status"), part("reason"))
        })
        .collect()
}

fn has(found: &[String], wanted: &[&str]) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|words| found.iter().any(|found| found.starts_with(words)))
}

/// The Services of Gateways, each with an address.
fn services(api: &ApiServer) -> Vec<Value> {
    let all = api.objects("services").into_iter();
    let own = all.filter(|service| service["spec"]["type"] == "LoadBalancer");
    own.collect()
}

/// The Gateway, as soon as it has an address and is programmed.
fn programmed(api: &ApiServer, controller: &Controller, own: &Value) -> Value {
    let state = || {
        let gateway = api.object("gateways", "outer");
        format!("{gateway:#}\n{}", controller.log())
    };
    let has_conditions = |wanted: &[&str]| {
        let gateway = api.object("gateways", "outer");
        let words = words(&gateway, &gateway["status"]["conditions"]);
        has(&words, wanted).then_some(gateway)
    };
    let not_yet = wait_for(|| has_conditions(&["Programmed False AddressNotAssigned"]));
    assert!(not_yet.is_some(), "{}", state());
    let address = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}});
    api.set_status("services", own, address);
    let programmed = wait_for(|| {
        let gateway = has_conditions(&["Accepted True ListenersNotValid", "Programmed True"])?;
        (gateway["status"]["addresses"][0]["value"] == "192.0.2.9").then_some(gateway)
    });
    programmed.unwrap_or_else(|| panic!("{}", state()))
}

/// Checks what listeners and routes are told.
fn check_told(api: &ApiServer, gateway: &Value) {
    for (place, (name, attached, wanted)) in LISTENERS.iter().enumerate() {
        let listener = &gateway["status"]["listeners"][place];
        assert_eq!(listener["name"], *name);
        assert_eq!(
            listener["attachedRoutes"], *attached,
            "{name}: {listener:#}"
        );
        let words = words(gateway, &listener["conditions"]);
        assert!(has(&words, wanted), "{name}: {words:?}");
    }
    for (name, wanted) in ROUTES {
        let told = wait_for(|| {
            let route = api.object("httproutes", name);
            let parents = route["status"]["parents"].as_array()?;
            let is_ours = parents.len() == 1 && parents[0]["controllerName"] == "turnpike/gateway";
            (is_ours && has(&words(&route, &parents[0]["conditions"]), wanted)).then_some(())
        });
        assert!(
            told.is_some(),
            "{name}: {:#}",
            api.object("httproutes", name)
        );
    }
    let class = api.object("gatewayclasses", "ours");
    assert!(has(
        &words(&class, &class["status"]["conditions"]),
        &["Accepted True"]
    ));
    let features = class["status"]["supportedFeatures"].as_array().unwrap();
    assert!(
        features.contains(&json!({"name": "HTTPRoute"})),
        "{class:#}"
    );
    for foreign in [
        api.object("gatewayclasses", "theirs"),
        api.object("gateways", "foreign"),
    ] {
        assert!(foreign["status"].is_null(), "{foreign:#}");
    }
}

/// The port of the container that a port of a Service leads to.
fn target(service: &Value, port: u64) -> u16 {
    let mut ports = service["spec"]["ports"].as_array().unwrap().iter();
    let row = ports.find(|row| row["port"] == port).unwrap();
    u16::try_from(row["targetPort"].as_u64().unwrap()).unwrap()
}

#[test]
fn objects_of_gateway_api_are_served_and_told() {
    let one = Backend::start("one");
    let api = ApiServer::start();
    api.put(&(cluster("/dev/null", &one) + &service("default", "one", one.port) + OBJECTS));
    let [plain, secure] = [(); 2].map(|()| ports::reserve().unwrap());
    let flags = [format!("--gateway-ports={plain},{secure}")];
    let controller = Controller::start_with(&api, &flags);

    // The Gateway has a Service, whose ports lead to where its listeners are served.
    let own = wait_for(|| services(&api).pop()).unwrap_or_else(|| panic!("{}", controller.log()));
    let gateway = programmed(&api, &controller, &own);
    check_told(&api, &gateway);
    for (host, words) in [
        ("a.first.test", "backend one"),
        ("b.first.test", "500 "),
        ("c.first.test", "404 "),
        ("labelled.test", "500 "), // no ReferenceGrant
        ("nobody.test", "404 "),
    ] {
        let asked = || Controller::ask(target(&own, 80), host, "/");
        let came = wait_for(|| asked().contains(words).then_some(()));
        assert!(
            came.is_some(),
            "{host}: {words}\n{}\n{}",
            asked(),
            controller.log()
        );
    }

    // A Gateway that goes takes its Service with it, and routes are told no more.
    api.remove("gateways", "outer");
    let gone = wait_for(|| {
        let route = api.object("httproutes", "good");
        let parents = route["status"]["parents"].as_array()?;
        (services(&api).is_empty() && parents.is_empty()).then_some(())
    });
    assert!(gone.is_some(), "{:?}\n{}", services(&api), controller.log());
}
