//! Tests of servers that commands have changed: the changes hold after every way in which the
//! server goes on, until the lines of the group change.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::libc::{SIGHUP, SIGKILL};
use serde_json::Value;
use turnpike_lane::sys::signal;

use crate::support::daemon::Daemon;
use crate::support::{is_running, stderr, turnpike, wait_for};

/// A server, and another one behind it that is four: a to d.
struct Pair {
    front: Daemon,
    origins: Daemon,
}

impl std::ops::Deref for Pair {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.front
    }
}

/// What both configurations begin with. The folders are for whoever serves.
const MAIN: &str = "daemon on; pid nginx.pid; error_log error.log notice; worker_processes 2; \
    events { }";

/// Starts a server in front of four others, with this text in its group `u`.
fn start(group: &str) -> Pair {
    let origins = Daemon::configured(|folder, _| {
        let servers = ["a", "b", "c", "d"].map(|name| {
            let listen = format!("listen unix:{folder}/{name}");
            format!("server {{ {listen}; location / {{ return 200 {name}; }} }}")
        });
        format!("{MAIN} http {{ access_log off; {} }}", servers.join(" "))
    });
    origins.start_again().unwrap();
    let front = Daemon::configured(|folder, port| {
        let group = group.replace("%ORIGINS%", origins.folder.name());
        let group = group.replace("%FOLDER%", folder);
        format!(
            "{MAIN} http {{ access_log off; upstream u {{ {group} }} \
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://u; }} }} }}"
        )
    });
    let state = front.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    front.start_again().unwrap();
    Pair { front, origins }
}

/// The address of one of the servers.
fn server(pair: &Pair, name: &str) -> String {
    format!("unix:{}/{name}", pair.origins.folder.name())
}

/// A verb of `upstream` for the group; its answer.
fn tell(daemon: &Daemon, verb: &str, words: &[&str]) -> Result<Value, String> {
    let words = [
        &["upstream", verb, "u", "--json"],
        words,
        &daemon.folder.arguments(&[]),
    ]
    .concat();
    let output = turnpike(&words);
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(stderr(&output))
    }
}

/// Status and body of the answer; a connection that a killed process had is tried again.
fn get(port: u16) -> String {
    loop {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            continue;
        };
        let mut text = String::new();
        let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
        if asked
            .and_then(|()| stream.read_to_string(&mut text))
            .is_ok()
            && !text.is_empty()
        {
            let status = text.split(' ').nth(1).unwrap().to_owned();
            let body = text.rsplit("\r\n\r\n").next().unwrap();
            return if status == "200" {
                body.to_owned()
            } else {
                status
            };
        }
    }
}

/// The servers that answer now.
fn answering(daemon: &Daemon) -> String {
    let answers: BTreeSet<String> = (0..100).map(|_| get(daemon.port)).collect();
    answers.into_iter().collect::<Vec<_>>().join(" ")
}

/// Kills the serving process, and waits until another one serves.
fn crash(daemon: &Daemon) {
    let serving = daemon.serving();
    signal::send(serving, SIGKILL).unwrap();
    wait_for("another serving process", || {
        ![0, serving].contains(&daemon.serving())
    });
}

fn reload(daemon: &Daemon) {
    let output = turnpike(&[&["reload"], &*daemon.folder.arguments(&[])].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

fn upgrade(daemon: &Daemon) {
    let old = daemon.master();
    daemon.upgrade(&[]).unwrap();
    wait_for("the old one to end", || !is_running(old));
}

/// Kills the master; another one goes on with the serving process.
fn lose_master(daemon: &Daemon) {
    let (master, serving) = (daemon.master(), daemon.serving());
    signal::send(master, SIGKILL).unwrap();
    let line = format!("#{serving}: the master process is gone; this process continues to serve");
    wait_for("the serving process to notice", || {
        daemon.log().contains(&line)
    });
    daemon.start_again().unwrap();
    crash(daemon);
}

/// Has another serving process take over: the environment of the old one cannot change.
fn replace(daemon: &Daemon) {
    let text = daemon.folder.read("nginx.conf");
    let name = format!("env CHANGED{}=1;", text.matches("CHANGED").count());
    daemon
        .folder
        .write("nginx.conf", format!("{name}\n{text}"))
        .unwrap();
    reload(daemon);
}

type Act = (&'static str, fn(&Daemon));

const ACTS: &[Act] = &[
    ("a reload", reload),
    ("a crash", crash),
    ("another process", replace),
    ("an upgrade", upgrade),
    ("another master", lose_master),
];

#[test]
fn changed_servers_outlive_what_the_server_goes_through() {
    let daemon =
        start("server unix:%ORIGINS%/a; server unix:%ORIGINS%/b; server unix:%ORIGINS%/c;");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| server(&daemon, name));
    assert_eq!(answering(&daemon), "a b c");
    // One is removed before anything happens, and never answers again.
    tell(&daemon, "remove", &[&c]).unwrap();
    let stop = Arc::<AtomicBool>::default();
    let watch = thread::spawn({
        let (stop, port) = (Arc::clone(&stop), daemon.port);
        move || {
            while !stop.load(Ordering::Relaxed) {
                assert_ne!(get(port), "c", "a server that was removed");
            }
        }
    });
    for (what, act) in ACTS {
        let steps: [(&str, &[&str], &str); 5] = [
            ("add", &[&d, "weight=2"], "a b d"),
            ("down", &[&a], "b d"),
            ("set", &[&a, &format!("{d} weight=3")], "d"),
            ("up", &[&a], "a d"),
            ("set", &[&a, &b], "a b"),
        ];
        for (verb, words, expected) in steps {
            tell(&daemon, verb, words).unwrap();
            assert_eq!(answering(&daemon), expected, "{verb}");
            act(&daemon);
            assert_eq!(
                answering(&daemon),
                expected,
                "{verb}, {what}: {}",
                daemon.log()
            );
        }
    }
    stop.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    tell(&daemon, "weight", &[&b, "3"]).unwrap();
    crash(&daemon);
    let listed = tell(&daemon, "list", &[]).unwrap();
    let peer = &listed["upstreams"][0]["peers"][1];
    assert_eq!(
        (&peer["weight"], &peer["from"]),
        (&3.into(), &"command".into()),
        "{listed}"
    );
    tell(&daemon, "reset", &[]).unwrap();
    assert_eq!(answering(&daemon), "a b c");
}

#[test]
fn other_lines_of_the_group_end_the_changes() {
    let daemon = start("server unix:%ORIGINS%/a; server unix:%ORIGINS%/b;");
    let [a, b, c] = ["a", "b", "c"].map(|name| server(&daemon, name));
    tell(&daemon, "set", &[&b, &c]).unwrap();
    tell(&daemon, "down", &[&b]).unwrap();
    assert_eq!(answering(&daemon), "c");
    let text = daemon.text().to_owned();
    // A comment and another group are no change of it.
    let beside = text.replace(
        "upstream u {",
        "upstream v { server 127.0.0.1:1; } upstream u { # the same\n",
    );
    daemon.folder.write("nginx.conf", beside).unwrap();
    reload(&daemon);
    assert_eq!(answering(&daemon), "c");
    let other = text.replace("/b;", "/b weight=3;");
    daemon.folder.write("nginx.conf", other).unwrap();
    reload(&daemon);
    assert_eq!(answering(&daemon), "a b");
    let line = "the lines of upstream \"u\" have changed: the changes that commands had made are \
        dropped";
    assert!(daemon.log().contains(line), "{}", daemon.log());
    // So it is in the next process, and with the lines before.
    crash(&daemon);
    assert_eq!(answering(&daemon), "a b");
    daemon.folder.write("nginx.conf", text).unwrap();
    reload(&daemon);
    assert_eq!(answering(&daemon), "a b");
    tell(&daemon, "drain", &[&a]).unwrap();
    assert_eq!(answering(&daemon), "b");
    let refused = [
        (
            "set",
            vec!["127.0.0.1:1 color=red"],
            "invalid parameter \"color=red\"",
        ),
        ("set", vec![&*c, &*c], "is given twice"),
        ("remove", vec!["127.0.0.1:1"], "has no peer \"127.0.0.1:1\""),
    ];
    for (verb, words, expected) in refused {
        let message = tell(&daemon, verb, &words).unwrap_err();
        assert!(message.contains(expected), "{verb}: {message}");
    }
}

#[test]
fn a_state_file_keeps_the_servers_of_an_empty_group() {
    let daemon = start("zone u 64k; state state/u.conf;");
    let [a, b] = ["a", "b"].map(|name| server(&daemon, name));
    assert_eq!(get(daemon.port), "503");
    tell(&daemon, "add", &[&a]).unwrap();
    tell(&daemon, "add", &[&b, "weight=2"]).unwrap();
    assert_eq!(answering(&daemon), "a b");
    tell(&daemon, "down", &[&a]).unwrap();
    let expected = format!("server {a} down;\nserver {b} weight=2;\n");
    assert_eq!(daemon.folder.read("state/u.conf"), expected);
    reload(&daemon);
    crash(&daemon);
    assert_eq!(answering(&daemon), "b");
    // A stop and a start: the file is all that is left.
    let master = daemon.master();
    turnpike(&daemon.folder.arguments(&["-s", "stop"]));
    wait_for("the end", || !is_running(master));
    daemon.start_again().unwrap();
    assert_eq!(answering(&daemon), "b");
    let listed = tell(&daemon, "list", &[]).unwrap();
    assert_eq!(listed["upstreams"][0]["peers"][0]["from"], "state");
    tell(&daemon, "set", &["servers="]).unwrap();
    assert_eq!(get(daemon.port), "503");
    assert_eq!(daemon.folder.read("state/u.conf"), "");
    daemon
        .folder
        .write("state/u.conf", format!("server {a};"))
        .unwrap();
    signal::send(daemon.master(), SIGHUP).unwrap();
    tell(&daemon, "reset", &[]).unwrap();
    assert_eq!(answering(&daemon), "a");
}

#[test]
fn a_request_waits_in_the_queue_of_an_empty_group() {
    let daemon = start("zone u 64k; state state/u.conf; queue 5 timeout=60s;");
    let waiting = thread::spawn({
        let port = daemon.port;
        move || get(port)
    });
    wait_for("the request to wait", || {
        let output = turnpike(&[&["metrics"], &*daemon.folder.arguments(&[])].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        text.contains("turnpike_upstream_queued{upstream=\"u\"} 1")
    });
    tell(&daemon, "set", &[&server(&daemon, "a")]).unwrap();
    assert_eq!(waiting.join().unwrap(), "a");
}
