//! Tests of nginx's control API (`-l`), with curl as its client.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::support::daemon::Daemon;
use crate::support::{is_running, stderr, turnpike, wait_for};
use nix::libc::{SIGKILL, SIGTERM};
use serde_json::{Value, json};
use turnpike_lane::sys::signal;
use turnpike_testkit::ports;

/// A daemon whose API is at a unix socket in its folder.
fn started() -> Daemon {
    let daemon = Daemon::prepare("", "daemon on;");
    start(&daemon, &at(&daemon)).unwrap();
    daemon
}

fn at(daemon: &Daemon) -> String {
    format!("unix:{}/api.sock", daemon.folder.name())
}

fn start(daemon: &Daemon, address: &str) -> Result<(), String> {
    let output = turnpike(&daemon.folder.arguments(&["-l", address]));
    if output.status.success() {
        Ok(())
    } else {
        Err(stderr(&output))
    }
}

/// The status and the body that curl gets, with more arguments of its own.
fn curl(address: &str, target: &str, more: &[&str]) -> (u16, String) {
    let mut command = Command::new("curl");
    command.args(["-s", "--max-time", "60", "-w", "\n%{http_code}"]);
    match address.strip_prefix("unix:") {
        Some(path) => command.args(["--unix-socket", path, &format!("http://api{target}")]),
        None => command.arg(format!("http://{address}{target}")),
    };
    let output = command.args(more).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_owned())
}

fn shown(daemon: &Daemon, target: &str) -> Value {
    let (status, body) = curl(&at(daemon), target, &[]);
    assert_eq!(status, 200, "{target}");
    serde_json::from_str(&body).unwrap()
}

fn reload(daemon: &Daemon) -> (u16, Value) {
    let (status, body) = curl(&at(daemon), "/1/control/config", &["-X", "PATCH"]);
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn a_unix_socket_shows_what_nginxs_description_has() {
    let daemon = started();
    let path = daemon.folder.path().join("api.sock");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(shown(&daemon, "/"), json!(["1"]));
    assert_eq!(shown(&daemon, "/1"), json!(["control", "nginx"]));
    assert_eq!(
        shown(&daemon, "/1/control/"),
        json!(["processes", "config"])
    );
    let version = shown(&daemon, "/1/nginx");
    assert!(version["version"].as_str().unwrap().starts_with("1."));
    assert!(version["build"].as_str().unwrap().starts_with("turnpike/"));
    let process = json!({ "name": "worker process", "pid": daemon.serving(), "exiting": false });
    assert_eq!(shown(&daemon, "/1/control/processes"), json!([process]));
    let file = daemon.folder.path().join("nginx.conf");
    let file = json!({ "name": file, "content": daemon.text() });
    assert_eq!(shown(&daemon, "/1/control/config"), json!([file]));
    let refused = [
        (["-X", "PATCH"], "/1/nginx", 405),
        (["-X", "PUT"], "/1/control/config", 405),
        (["-d", "body"], "/1/control/processes", 405),
        (["-X", "GET"], "/1/control/upstreams", 404),
        (["-X", "G(T"], "/1", 400),
    ];
    for (more, target, status) in refused {
        assert_eq!(curl(&at(&daemon), target, &more), (status, String::new()));
    }
    signal::send(daemon.master(), SIGTERM).unwrap();
    wait_for("the file to go", || !path.exists());
}

#[test]
fn a_reload_answers_when_it_is_active_or_with_what_was_logged() {
    let daemon = started();
    assert_eq!(reload(&daemon), (200, json!({ "logs": [] })));
    wait_for("its line", || {
        daemon.log().contains("reloaded: generation 2")
    });
    let broken = daemon.text().replace("events {", "nonsense on; events {");
    daemon.folder.write("nginx.conf", &broken).unwrap();
    let (status, report) = reload(&daemon);
    let line = report["logs"][0].as_str().unwrap();
    assert_eq!(status, 422);
    assert!(
        line.contains(" [emerg] ") && line.contains(": unknown directive \"nonsense\" in "),
        "{report}"
    );
    // It is a line of the log, and what is served and shown is as before.
    assert!(daemon.log().contains(line));
    assert_eq!(
        shown(&daemon, "/1/control/config")[0]["content"],
        daemon.text()
    );
    let odd = daemon
        .text()
        .replace("location /", "server_name a,; location /");
    daemon.folder.write("nginx.conf", &odd).unwrap();
    let (status, report) = reload(&daemon);
    let line = report["logs"][0].as_str().unwrap();
    assert!(status == 200 && line.contains(" [warn] "), "{report}");
}

#[test]
fn a_port_shows_things_to_this_machine_and_does_nothing() {
    let daemon = Daemon::prepare("", "daemon on;");
    let port = ports::reserve().unwrap();
    start(&daemon, &port.to_string()).unwrap();
    let address = format!("127.0.0.1:{port}");
    assert_eq!(
        curl(&address, "/1", &[]),
        (200, "[\"control\",\"nginx\"]".to_owned())
    );
    let refused = [
        (["-X", "PATCH"], 405),
        (["-H", "Host: rebound.example"], 421),
        (["-H", "Host: 10.0.0.1"], 421),
    ];
    for (more, status) in refused {
        let answer = curl(&address, "/1/control/config", &more);
        assert_eq!(answer, (status, String::new()), "{more:?}");
    }
    assert!(!daemon.log().contains("reconfiguring"));
}

#[test]
fn an_address_that_others_reach_or_that_is_taken_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let daemon = Daemon::prepare("", "daemon on;");
    let file = daemon.folder.path().join("nginx.conf");
    let cases = [
        ("*:8000", "use \"-l unix:FILE\", or a port alone"),
        ("x", "control: invalid port in \"x\""),
        (&taken, "failed (98: Address already in use)"),
        (
            &format!("unix:{}", file.display()),
            "failed (17: File exists)",
        ),
    ];
    for (address, message) in cases {
        let error = start(&daemon, address).unwrap_err();
        assert!(error.contains(message), "{address}: {error}");
        wait_for("the end", || !daemon.folder.has("nginx.pid"));
        assert!(!daemon.folder.has("s.sock"), "nothing is left");
    }
    let output = turnpike(&daemon.folder.arguments(&["-t", "-l", "*:8000"]));
    assert!(!output.status.success());
}

#[test]
fn it_survives_upgrades_and_crashes() {
    let port = ports::reserve().unwrap();
    for address in ["unix", "port"] {
        let daemon = Daemon::prepare("", "daemon on;");
        let address = if address == "unix" {
            at(&daemon)
        } else {
            format!("127.0.0.1:{port}")
        };
        start(&daemon, &address).unwrap();
        let answers = || {
            let (status, body) = curl(&address, "/1/control/processes", &[]);
            assert_eq!(status, 200, "{address}");
            let list: Value = serde_json::from_str(&body).unwrap();
            list[0]["pid"].as_i64().unwrap()
        };
        let is_answered_by = |master: i32| {
            let process = i32::try_from(answers()).unwrap();
            crate::support::children(master).contains(&process)
        };
        let old = daemon.master();
        assert!(is_answered_by(old));
        daemon.upgrade(&[&daemon.script("exit 3")]).unwrap_err();
        assert!(is_answered_by(old), "it is backed out");
        daemon.upgrade(&[]).unwrap();
        assert!(is_answered_by(daemon.master()), "the new one answers");
        wait_for("the old one to end", || !is_running(old));
        assert!(is_answered_by(daemon.master()));
        let serving = daemon.serving();
        signal::send(serving, SIGKILL).unwrap();
        wait_for("another one", || {
            let now = daemon.serving();
            now != serving && now > 0
        });
        assert_ne!(answers(), i64::from(serving));
        // What a dead master has left is no hindrance.
        let master = daemon.master();
        signal::send(master, SIGKILL).unwrap();
        wait_for("its end", || !is_running(master));
        start(&daemon, &address).unwrap();
        assert!(answers() > 0);
    }
}

#[test]
fn a_client_that_says_nothing_keeps_nobody_waiting() {
    let daemon = started();
    let path = daemon.folder.path().join("api.sock");
    let mut slow = UnixStream::connect(&path).unwrap();
    slow.write_all(b"GET /1 HT").unwrap();
    assert_eq!(shown(&daemon, "/1"), json!(["control", "nginx"]));
    let served = TcpStream::connect(("127.0.0.1", daemon.port));
    assert!(served.is_ok());
    slow.write_all(b"TP/1.1\r\nHost: x\r\n\r\n").unwrap();
    slow.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let places: Vec<_> = (0..64)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    wait_for("a place", || curl(&at(&daemon), "/1", &[]).0 == 0);
    drop(places);
    wait_for("a free place", || curl(&at(&daemon), "/1", &[]).0 == 200);
}
