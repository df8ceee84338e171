//! The controller in a cluster of Kubernetes' own API server, in a network namespace: the API
//! server takes the manifests, and their rights suffice for status, certificate and webhook. The
//! conformance suite of Gateway API passes.

mod balancer;
mod cluster;
mod conformance;
mod node;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};
use turnpike_testkit::wait_for;

use crate::outcome::Outcome;
use crate::workspace::{self, must, output};

use cluster::{ADDRESS, Cluster};

/// The argument with which this chore starts itself inside of the namespace.
const INSIDE: &str = "--inside";

const MANIFESTS: &str = include_str!("../../../contrib/kubernetes/turnpike-ingress.yaml");

/// The kinds that need nodes or their own controllers, and are only asked about.
const ONLY_ASKED: &[&str] = &[
    "Deployment",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
];

/// The ports of the controller, and of the backends before and after a change.
const HTTP: u16 = 8080;
const HEALTH: u16 = 10254;
const WEBHOOK: u16 = 8443;
const BACKENDS: [(u16, &str); 2] = [(9001, "one"), (9002, "two")];

/// Runs it.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    match arguments {
        [first, rest @ ..] if first == INSIDE => return inside(rest.first().map(String::as_str)),
        [] | [_] => {}
        _ => return Err("usage: cargo xtask kubernetes [NAME OF A CONFORMANCE TEST]".to_owned()),
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: kubernetes needs root (a network namespace)");
        return Ok(());
    }
    workspace::build_programs(&["turnpike", "turnpike-ingress"])?;
    cluster::build()?;
    conformance::build()?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    must(
        Command::new("unshare")
            .arg("--net")
            .arg(own)
            .args(["kubernetes", INSIDE])
            .args(arguments),
    )
}

fn inside(one_test: Option<&str>) -> Outcome {
    let bridge = node::BRIDGE;
    for words in [
        "link set lo up",
        &format!("link add {bridge} type bridge"),
        &format!("addr add {ADDRESS}/16 dev {bridge}"),
        &format!("link set {bridge} up"),
        &format!("route add {} dev {bridge}", balancer::NETWORK),
    ] {
        node::ip(&words.split(' ').collect::<Vec<_>>())?;
    }
    for (port, name) in BACKENDS {
        backend(port, name)?;
    }
    let mut cluster = Cluster::start()?;
    install(&cluster)?;
    conformance::install(&cluster)?;
    start(&mut cluster)?;
    let programs = conformance::build()?;
    let checked = check(&cluster);
    let checked = checked.and_then(|()| conformance::run(&mut cluster, &programs, one_test));
    checked.map_err(|error| format!("{error}\n{}", cluster.log("controller")))
}

/// Applies the manifests. The API server has the last word about each field.
fn install(cluster: &Cluster) -> Outcome {
    let mut count = 0;
    for text in MANIFESTS.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let kind = object["kind"].as_str().unwrap_or_default();
        cluster.apply(&object, ONLY_ASKED.contains(&kind))?;
        count += 1;
    }
    println!("kubernetes: {count} manifests are taken");
    Ok(())
}

/// Starts the controller as the Deployment does, on the rights of its account.
fn start(cluster: &mut Cluster) -> Outcome {
    let programs = workspace::target().join("debug");
    let folder = cluster.folder().display().to_string();
    cluster.spawn(
        Command::new(programs.join("turnpike-ingress"))
            .arg("run")
            .arg("--server")
            .arg(programs.join("turnpike"))
            .arg(format!("--kubeconfig={folder}/controller.yaml"))
            .arg(format!("--folder={folder}/state"))
            .arg(format!("--temporary={folder}"))
            .arg(format!("--http-port={HTTP}"))
            .arg(format!("--healthz-port={HEALTH}"))
            .arg(format!("--validating-webhook=:{WEBHOOK}"))
            .args(["--https-port=8444", "--ingress-class=turnpike"])
            .args([
                "--controller-class=turnpike/ingress",
                "--publish-status-address=192.0.2.7",
            ])
            .args(["--configmap=turnpike-ingress/turnpike-ingress"])
            .env("POD_NAME", "pod-a")
            .env("POD_NAMESPACE", "turnpike-ingress"),
        "controller",
    )?;
    cluster.apply(
        &slice(
            "turnpike-ingress",
            "turnpike-ingress-admission",
            "https",
            WEBHOOK,
        ),
        false,
    )
}

fn check(cluster: &Cluster) -> Outcome {
    let [(one, _), (two, _)] = BACKENDS;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ports": [{"name": "web", "port": 80}]},
    });
    cluster.apply(&service, false)?;
    cluster.apply(&slice("default", "web", "web", one), false)?;
    cluster.apply(&ingress("first", "first.test"), false)?;
    served("first.test", "backend one")?;
    let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/first";
    came("the address in the status", || {
        cluster.get(path).ok()?.contains("192.0.2.7").then_some(())
    })?;
    println!("kubernetes: an Ingress is served, and its status has the address");

    let reloads = metric("reloads")?;
    cluster.apply(&slice("default", "web", "web", two), false)?;
    served("first.test", "backend two")?;
    if metric("reloads")? != reloads {
        return Err("a change of endpoints has caused a reload".to_owned());
    }
    println!("kubernetes: endpoints change without a reload");

    let words = "first.test/ is Ingress default/first's, which is older";
    came("a refusal by the webhook", || {
        let applied = cluster.apply(&ingress("second", "first.test"), true);
        applied.err().filter(|error| error.contains(words))
    })?;
    cluster.apply(&ingress("third", "third.test"), false)?;
    served("third.test", "backend two")?;
    println!("kubernetes: the API server trusts the webhook, which refuses what collides");
    Ok(())
}

fn served(host: &str, words: &str) -> Outcome {
    let asked = || {
        let host = format!("Host: {host}");
        let address = format!("http://127.0.0.1:{HTTP}/");
        let mut curl = Command::new("curl");
        let answer = output(curl.args(["-sS", "--max-time", "5", "-H", &host, &address])).ok()?;
        answer.contains(words).then_some(())
    };
    came(&format!("{words} for {host}"), asked)
}

fn came<T>(what: &str, look: impl FnMut() -> Option<T>) -> Outcome {
    let found = wait_for(look).map(drop);
    found.ok_or_else(|| format!("{what} did not come"))
}

fn metric(name: &str) -> Result<String, String> {
    let address = format!("http://127.0.0.1:{HEALTH}/metrics");
    let text = output(Command::new("curl").args(["-sS", "--max-time", "5", &address]))?;
    let prefix = format!("nginx_ingress_controller_{name} ");
    let mut values = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let value = values.next().map(str::to_owned);
    value.ok_or_else(|| format!("no metric {name}"))
}

/// The one endpoint of a Service.
fn slice(namespace: &str, service: &str, name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-1"),
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": true}}],
        "ports": [{"name": name, "port": port, "protocol": "TCP"}],
    })
}

fn ingress(name: &str, host: &str) -> Value {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "ingressClassName": "turnpike",
            "rules": [{"host": host, "http": {"paths": [path]}}],
        },
    })
}

/// A backend that says its name; it ends with the chore.
fn backend(port: u16, name: &'static str) -> Outcome {
    let listener =
        TcpListener::bind((ADDRESS, port)).map_err(|error| format!("{ADDRESS}:{port}: {error}"))?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let text = format!("backend {name}\n");
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes);
            let _ = read.and_then(|_| stream.write_all(answer.as_bytes())); // it asks again
        }
    });
    Ok(())
}
