//! Tests of active checks in `stream`, and of what shows the state of its servers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use turnpike_testkit::{Folder, Server, wait_for};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

/// A server of TCP or UDP that says its name, and answers a ping as told.
struct Peer {
    port: u16,
    is_well: Arc<AtomicBool>,
}

impl Peer {
    /// A connection is asked first, as by the check; whoever says nothing of a ping gets the name.
    fn tcp(name: &'static str) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Peer::new(listener.local_addr().unwrap().port());
        let is_well = Arc::clone(&peer.is_well);
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let is_well = Arc::clone(&is_well);
                thread::spawn(move || {
                    let mut asked = [0; 64];
                    let count = client.read(&mut asked).unwrap_or(0);
                    let _ = client.write_all(answer(&asked[..count], name, &is_well));
                });
            }
        });
        peer
    }

    fn udp(name: &'static str) -> Peer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = Peer::new(socket.local_addr().unwrap().port());
        let is_well = Arc::clone(&peer.is_well);
        thread::spawn(move || {
            let mut asked = [0; 64];
            while let Ok((count, from)) = socket.recv_from(&mut asked) {
                let said = answer(&asked[..count], name, &is_well);
                socket.send_to(said, from).unwrap();
            }
        });
        peer
    }

    fn new(port: u16) -> Peer {
        Peer {
            port,
            is_well: Arc::new(AtomicBool::new(true)),
        }
    }

    fn set(&self, is_well: bool) {
        self.is_well.store(is_well, Ordering::SeqCst);
    }
}

fn answer(asked: &[u8], name: &'static str, is_well: &AtomicBool) -> &'static [u8] {
    match (asked.starts_with(b"PING"), is_well.load(Ordering::SeqCst)) {
        (false, _) => name.as_bytes(),
        (true, true) => b"+PONG\r\n",
        (true, false) => b"-LOADING\r\n",
    }
}

fn start(kind: &str, peers: &[Peer; 2], parameters: &str) -> Server {
    let [one, two] = [peers[0].port, peers[1].port];
    let by_datagrams = if kind == "udp" { "udp" } else { "" };
    Server::builder(TURNPIKE)
        .configuration(&format!(
            "error_log %FOLDER%/error.log notice;
            control %FOLDER%/control.sock;
            events {{ }}
            http {{ server {{ listen 127.0.0.1:%PORT%; location / {{ metrics by=total; }} }} }}
            stream {{
                match pong {{ send \"PING\\x0d\\n\"; expect +PONG; }}
                upstream pair {{ server 127.0.0.1:{one}; server 127.0.0.1:{two}; }}
                health_check_timeout 30s;
                server {{
                    listen 127.0.0.1:%PORT_PAIR% {kind};
                    proxy_pass pair;
                    health_check interval=20ms match=pong {parameters} {by_datagrams};
                }}
            }}"
        ))
        .start()
}

/// What a session hears.
fn heard(server: &Server, kind: &str) -> String {
    let port = server.port_named("PAIR");
    let mut text = String::new();
    if kind == "udp" {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.connect(("127.0.0.1", port)).unwrap();
        client.send(b"?").unwrap();
        let mut said = [0; 64];
        let count = client.recv(&mut said).unwrap();
        text.push_str(std::str::from_utf8(&said[..count]).unwrap());
    } else {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"?").unwrap();
        client.read_to_string(&mut text).unwrap();
    }
    text
}

#[test]
fn a_server_that_fails_its_checks_gets_no_sessions_until_it_passes() {
    for kind in ["", "udp"] {
        let make = if kind == "udp" { Peer::udp } else { Peer::tcp };
        let peers = [make("one"), make("two")];
        let server = start(kind, &peers, "");
        let both: Vec<String> = (0..2).map(|_| heard(&server, kind)).collect();
        assert!(both.contains(&"one".to_owned()), "{kind}: {both:?}");
        assert!(both.contains(&"two".to_owned()), "{kind}: {both:?}");
        peers[0].set(false);
        let port = peers[0].port;
        server.wait_for_log(
            "error.log",
            &format!(
                "peer is unhealthy while checking data from upstream, health check \"pong\" of \
                 peer 127.0.0.1:{port} in upstream \"pair\""
            ),
        );
        for _ in 0..4 {
            assert_eq!(heard(&server, kind), "two");
        }
        peers[0].set(true);
        server.wait_for_log("error.log", "peer is healthy, health check \"pong\"");
        wait_for(|| (heard(&server, kind) == "one").then_some(())).expect("it takes sessions");
    }
}

#[test]
fn a_server_of_udp_that_does_not_answer_well_is_unhealthy() {
    let peers = [Peer::udp("one"), Peer::udp("two")];
    peers[0].set(false);
    let server = start("udp", &peers, "mandatory");
    // Before its first pass, neither takes sessions; the first never passes.
    wait_for(|| {
        let list = upstreams(&server, &["list"]);
        (list["upstreams"][0]["peers"][1]["healthy"] == true).then_some(())
    })
    .expect("the second passes");
    for _ in 0..4 {
        assert_eq!(heard(&server, "udp"), "two");
    }
    let list = upstreams(&server, &["list"]);
    let first = &list["upstreams"][0]["peers"][0];
    assert_eq!(first["state"], "unhealthy", "{list}");
}

/// The answer of `turnpike upstream` with these words.
fn upstreams(server: &Server, words: &[&str]) -> Value {
    let mut command = Command::new(TURNPIKE);
    command.args(["upstream", "--json"]);
    command
        .arg("--socket")
        .arg(server.folder().join("control.sock"));
    let output = command.args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn commands_and_metrics_know_the_servers() {
    let peers = [Peer::tcp("one"), Peer::tcp("two")];
    let server = start("", &peers, "");
    let [one, two] = [0, 1].map(|at| format!("127.0.0.1:{}", peers[at].port));
    upstreams(&server, &["down", "stream:pair", &one]);
    for _ in 0..3 {
        assert_eq!(heard(&server, ""), "two");
    }
    let value = |what: &str, peer: &str| {
        let page = server.get("/").text();
        let series =
            format!("turnpike_stream_upstream_{what}{{upstream=\"pair\",peer=\"{peer}\"}}");
        let line = page.lines().find(|line| line.starts_with(&series));
        let line = line.unwrap_or_else(|| panic!("{series}: {page}"));
        line[series.len()..].trim().parse::<f64>().unwrap()
    };
    // The session has ended for the client before it is counted.
    wait_for(|| (value("session_seconds_count", &two) == 3.0).then_some(())).expect("three");
    for (what, peer, expected) in [
        ("sessions_total", &one, 0.0),
        ("sessions_total", &two, 3.0),
        ("available", &one, 0.0),
        ("available", &two, 1.0),
        ("sent_bytes_total", &two, 3.0),
        ("received_bytes_total", &two, 9.0),
        ("active", &two, 0.0),
    ] {
        assert_eq!(value(what, peer), expected, "{what} of {peer}");
    }
    let list = upstreams(&server, &["list"]);
    let group = &list["upstreams"][0];
    assert_eq!(group["name"], "stream:pair", "{list}");
    assert_eq!(group["peers"][0]["mode"], "down", "{list}");
    assert_eq!(group["peers"][1]["requests"], 3, "{list}");
}

#[test]
fn checks_that_cannot_be_made_are_refused() {
    let server = "server { listen 127.0.0.1:1; proxy_pass 127.0.0.1:2;";
    let cases = [
        ("health_check udp;", "\"udp\" parameter requires \"match\""),
        ("health_check match=none;", "unknown match \"none\" in"),
        ("health_check uri=/;", "invalid parameter \"uri=/\""),
        (
            "health_check persistent;",
            "\"persistent\" parameter requires \"mandatory\"",
        ),
        (
            "health_check interval=0;",
            "invalid parameter \"interval=0\"",
        ),
        (
            "} server { listen 127.0.0.1:3; return x; health_check;",
            "\"health_check\" directive requires \"proxy_pass\"",
        ),
        (
            "} server { listen 127.0.0.1:3; proxy_pass $remote_addr; health_check;",
            "\"health_check\" requires \"proxy_pass\" without variables",
        ),
    ];
    let folder = Folder::create().unwrap();
    for (directives, expected) in cases {
        let text = format!("events {{ }} stream {{ {server} {directives} }} }}");
        folder.write("nginx.conf", &text).unwrap();
        let file = folder.path().join("nginx.conf");
        let mut check = Command::new(TURNPIKE);
        check
            .args(["-t", "-e", "/dev/null", "-p"])
            .arg(folder.path());
        let output = check.arg("-c").arg(file).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{directives}");
        assert!(errors.contains(expected), "{directives}: {errors}");
    }
}
