//! The controller beside a cluster: what changes there is served, and what goes wrong there does
//! not reach clients.

use std::process::{Child, Command, Stdio};

use turnpike_testkit::{Folder, Peer, Signal, ports, process, wait_for};

use crate::api_server::ApiServer;
use crate::bed::{Backend, ingress, program, service};

/// A controller with its server.
pub(crate) struct Controller {
    child: Child,
    folder: Folder,
    pub(crate) http_port: u16,
    health_port: u16,
}

impl Controller {
    pub(crate) fn start(api: &ApiServer) -> Controller {
        Controller::start_with(api, &[])
    }

    pub(crate) fn start_with(api: &ApiServer, flags: &[String]) -> Controller {
        let folder = Folder::create().unwrap();
        let [http, https, status, health] = [(); 4].map(|()| ports::reserve().unwrap());
        let log = std::fs::File::create(folder.path().join("controller.log")).unwrap();
        let path = folder.path().display().to_string();
        let child = Command::new(env!("CARGO_BIN_EXE_turnpike-ingress"))
            .arg("run")
            .arg(format!("--apiserver-host=http://127.0.0.1:{}", api.port))
            .arg("--server")
            .arg(program())
            .arg(format!("--folder={path}/state"))
            .arg(format!("--temporary={path}"))
            .arg(format!("--http-port={http}"))
            .arg(format!("--https-port={https}"))
            .arg(format!("--status-port={status}"))
            .arg("--healthz-host=127.0.0.1")
            .arg(format!("--healthz-port={health}"))
            .args(["--configmap=default/controller", "--election-ttl=3s"])
            .args(["--publish-status-address=192.0.2.7"])
            .args(flags)
            .env("POD_NAME", "pod-a")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Controller {
            child,
            folder,
            http_port: http,
            health_port: health,
        }
    }

    /// The response to a request; empty if nobody listens.
    pub(crate) fn ask(port: u16, host: &str, target: &str) -> String {
        if !ports::is_listening(port) {
            return String::new();
        }
        let mut peer = Peer::connect(port);
        peer.send(format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ));
        String::from_utf8_lossy(&peer.rest()).into_owned()
    }

    /// Waits until a host is answered so.
    pub(crate) fn wait(&self, host: &str, expected: &str) {
        let came = || Self::ask(self.http_port, host, "/");
        let found = wait_for(|| came().contains(expected).then_some(()));
        assert!(
            found.is_some(),
            "{host}: {expected}\n{}\n{}",
            came(),
            self.log()
        );
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = Self::ask(self.health_port, "it", "/metrics");
        let name = format!("nginx_ingress_controller_{name} ");
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(&name)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no metric {name}\n{text}\n{}", self.log()))
    }

    /// The text of the configuration.
    pub(crate) fn configuration(&self) -> String {
        self.folder.read("state/nginx.conf")
    }

    pub(crate) fn log(&self) -> String {
        self.folder.read("controller.log")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return; // its number may be another process' by now
        }
        process::signal(self.child.id(), Signal::SIGTERM);
        let ended = wait_for(|| self.child.try_wait().unwrap());
        if ended.is_none() {
            let server: Option<u32> = self.folder.read("state/pid").trim().parse().ok();
            server.map(|pid| process::signal(pid, Signal::SIGKILL));
            let _ = self.child.kill(); // it may have ended meanwhile
        }
    }
}

pub(crate) fn cluster(folder: &str, one: &Backend) -> String {
    format!(
        "---\nkind: ConfigMap\nmetadata: {{name: controller}}\ndata: {{bind-address: 127.0.0.1, \
         worker-processes: \"1\", access-log-path: {folder}, error-log-path: stderr}}\n"
    ) + &service("default", "one", one.port)
        + &ingress("first", "first.test", "", "Prefix / one")
}

#[test]
fn changes_are_served_and_reported() {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let api = ApiServer::start();
    api.put(&cluster("/dev/null", &one));
    let controller = Controller::start(&api);
    controller.wait("first.test", "backend one");
    let health = Controller::ask(controller.health_port, "it", "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 "), "{health}");
    let address = wait_for(|| {
        let status = api.object("ingresses", "first")["status"].clone();
        (status["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.7").then_some(())
    });
    assert!(address.is_some(), "{}", controller.log());
    let lease = api.object("leases", "ingress-controller-leader");
    assert_eq!(lease["spec"]["holderIdentity"], "pod-a");

    // Endpoints change without a reload, also to none.
    let reloads = controller.metric("reloads");
    api.put(&service("default", "one", two.port));
    controller.wait("first.test", "backend two");
    api.remove("endpointslices", "one-1");
    controller.wait("first.test", "503 ");
    api.put(&service("default", "one", one.port));
    controller.wait("first.test", "backend one");
    assert_eq!(
        controller.metric("reloads"),
        reloads,
        "{}",
        controller.log()
    );

    // An Ingress comes by a reload, and goes.
    api.put(&ingress("second", "second.test", "", "Prefix / one"));
    controller.wait("second.test", "backend one");
    assert!(controller.metric("reloads") > reloads);
    api.remove("ingresses", "second");
    controller.wait("second.test", "404 ");
}

#[test]
fn what_goes_wrong_does_not_reach_clients() {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let api = ApiServer::start();
    api.put(&cluster("/dev/null", &one));
    let controller = Controller::start(&api);
    controller.wait("first.test", "backend one");

    // A bad Ingress gets an event, and touches no other.
    api.put(&ingress(
        "bad",
        "bad.test",
        "upstream-hash-by: $no_such_variable",
        "Prefix / one",
    ));
    let told = wait_for(|| {
        let notes = api.notes();
        notes
            .iter()
            .any(|note| note.contains("the server refuses it"))
            .then_some(())
    });
    assert!(told.is_some(), "{:?}\n{}", api.notes(), controller.log());
    controller.wait("first.test", "backend one");

    // Watches end, and the past is forgotten.
    api.forget();
    api.put(&service("default", "one", two.port));
    controller.wait("first.test", "backend two");

    // The API server is away: what is in force stays.
    api.set_away(true);
    controller.wait("first.test", "backend two");
    let health = Controller::ask(controller.health_port, "it", "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 "), "{health}");
    api.put(&service("default", "one", one.port));
    api.set_away(false);
    controller.wait("first.test", "backend one");
}

#[test]
fn a_controller_that_is_ended_drains_its_server() {
    let one = Backend::start("one");
    let api = ApiServer::start();
    api.put(&cluster("/dev/null", &one));
    let mut controller = Controller::start(&api);
    controller.wait("first.test", "backend one");
    process::signal(controller.child.id(), Signal::SIGTERM);
    let ended = wait_for(|| controller.child.try_wait().unwrap());
    let log = controller.log();
    assert!(ended.is_some_and(|status| status.success()), "{log}");
    assert!(log.contains("gracefully shutting down"), "{log}");
    assert!(
        !controller.folder.path().join("state/pid").exists(),
        "{log}"
    );
}

#[test]
fn an_api_server_that_takes_no_status_delays_no_endpoints() {
    let (one, two) = (Backend::start("one"), Backend::start("two"));
    let api = ApiServer::start();
    api.get_stuck();
    api.put(&cluster("/dev/null", &one));
    let controller = Controller::start(&api);
    controller.wait("first.test", "backend one");
    for backend in [("backend two", two.port), ("backend one", one.port)] {
        api.put(&service("default", "one", backend.1));
        controller.wait("first.test", backend.0);
    }
}

/// The webhook's objects, as the manifests have them.
const WEBHOOK: &str = "---
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: ingresses.turnpike
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hook, namespace: default, path: /}}
";

/// Asks the webhook as the API server does: it trusts what the configuration names.
fn reviewed(api: &ApiServer, folder: &Folder, port: u16, ingress: &str) -> String {
    let configuration = api.object("validatingwebhookconfigurations", "hook");
    let bundle = &configuration["webhooks"][0]["clientConfig"]["caBundle"];
    let bundle: k8s_openapi::ByteString = serde_json::from_value(bundle.clone()).unwrap();
    folder.write("authorities.pem", bundle.0).unwrap();
    let object: serde_json::Value =
        serde_saphyr::from_str(ingress.trim_start_matches("---\n")).unwrap();
    let review = serde_json::json!({"request": {"uid": "u-1", "object": object}});
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "20", "--cacert"])
        .arg(folder.path().join("authorities.pem"))
        .args(["--connect-to", &format!("::127.0.0.1:{port}")])
        .args(["--data-binary", &review.to_string()])
        .arg(format!("https://hook.default.svc:{port}/"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn the_webhook_has_a_certificate_that_the_api_server_trusts() {
    let one = Backend::start("one");
    let api = ApiServer::start();
    api.put(&(cluster("/dev/null", &one) + WEBHOOK));
    let port = ports::reserve().unwrap();
    let flags = [
        format!("--validating-webhook=127.0.0.1:{port}"),
        "--validating-webhook-name=hook".to_owned(),
    ];
    let controller = Controller::start_with(&api, &flags);
    controller.wait("first.test", "backend one");
    let good = ingress("new", "new.test", "", "Prefix / one");
    let folder = Folder::create().unwrap();
    let answered = wait_for(|| {
        let is_told = !api.object("secrets", "hook").is_null();
        let answer = is_told.then(|| reviewed(&api, &folder, port, &good))?;
        answer.contains("\"allowed\":true").then_some(())
    });
    assert!(answered.is_some(), "{}", controller.log());
    let bad = ingress("new", "first.test", "", "Prefix / one");
    let answer = reviewed(&api, &folder, port, &bad);
    assert!(
        answer.contains("first.test/ belongs to Ingress default/first"),
        "{answer}"
    );

    // Garbage in the Secret does not stop what is in use, and is replaced.
    api.put("---\nkind: Secret\nmetadata: {name: hook}\ndata: {tls.crt: AAAA}\n");
    let answer = reviewed(&api, &folder, port, &bad);
    assert!(answer.contains("\"allowed\":false"), "{answer}");
}
