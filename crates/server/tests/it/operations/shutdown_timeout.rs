//! Tests of `worker_shutdown_timeout`: what a reload and a graceful end close after that time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::echo;
use turnpike_testkit::{DEADLINE, Origin, Server, Signal, Step, wait_for};

const CONFIGURATION: &str = "
worker_shutdown_timeout 20ms;
error_log %FOLDER%/error.log info;
events { }
stream {
    server { listen 127.0.0.1:%PORT_relay%; proxy_pass 127.0.0.1:%ECHO%; }
}
http {
    log_format requests '$request_uri $status';
    access_log %FOLDER%/requests.log requests;
    keepalive_timeout 1h;
    client_header_timeout 1h;
    client_body_timeout 1h;
    proxy_read_timeout 1h;
    server {
        listen 127.0.0.1:%PORT%;
        location / { return 200 served; }
        location /slow { limit_rate 30; return 200 slowly; }
        location /silent {
            proxy_pass http://127.0.0.1:%SILENT%;
            proxy_request_buffering off;
        }
        location /tunnel {
            proxy_pass http://127.0.0.1:%TUNNEL%;
            proxy_http_version 1.1;
            proxy_set_header Upgrade a;
            proxy_set_header Connection upgrade;
        }
    }
}";

/// What a client has sent when the time passes, what it has got by then, and the log's line.
const CLIENTS: &[(&str, &str, &str)] = &[
    ("", "", ""),
    ("GET / HTTP/1.1\r\n", "", ""),
    (
        "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n",
        "served",
        "/kept 200",
    ),
    ("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", "H", "/slow 200"),
    ("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n", "", "/silent 499"),
    (
        "POST /silent/up HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
        "",
        "/silent/up ",
    ),
    (
        "GET /tunnel HTTP/1.1\r\nHost: a\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n",
        "101",
        "/tunnel 101",
    ),
];

struct Bench {
    server: Server,
    silent: Origin,
    _tunnel: Origin,
}

impl Bench {
    fn start() -> Bench {
        let silent = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n";
        let tunnel = Origin::start(vec![vec![
            Step::ReadHead,
            Step::send(head),
            Step::ReadToEnd,
        ]]);
        let configuration = CONFIGURATION
            .replace("%ECHO%", &echo::echo().to_string())
            .replace("%SILENT%", &silent.port().to_string())
            .replace("%TUNNEL%", &tunnel.port().to_string());
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .start();
        Bench {
            server,
            silent,
            _tunnel: tunnel,
        }
    }

    /// Clients that have sent their part and got theirs.
    fn clients(&self) -> Vec<TcpStream> {
        let port = self.server.port();
        let mut clients: Vec<TcpStream> = CLIENTS
            .iter()
            .map(|(sent, got, _)| client(port, sent, got))
            .collect();
        clients.push(client(self.server.port_named("relay"), "ab", "ab"));
        self.silent.wait_for_connections(2);
        clients
    }

    fn wait_for_lines(&self) {
        for (.., line) in CLIENTS {
            self.server.wait_for_log("requests.log", line);
        }
    }
}

/// Sends a text and reads until this is in the answer.
fn client(port: u16, sent: &str, awaited: &str) -> TcpStream {
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    client.write_all(sent.as_bytes()).unwrap();
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.contains(awaited) {
        client.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    client
}

/// Whether the server has closed it; what it still sends before is left out.
fn is_closed(client: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    match client.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_reload_closes_the_connections_before_it_after_that_time() {
    let bench = Bench::start();
    let clients = bench.clients();
    bench.server.signal(Signal::SIGHUP);
    for (index, mut client) in clients.into_iter().enumerate() {
        assert!(is_closed(&mut client), "client {index}");
    }
    bench.wait_for_lines();
    let response = bench.server.get("/");
    assert_eq!(response.text(), "served");
}

#[test]
fn a_graceful_end_logs_the_requests_that_it_breaks_off() {
    let mut bench = Bench::start();
    let clients = bench.clients();
    bench.server.signal(Signal::SIGQUIT);
    assert!(bench.server.wait().success());
    for (index, mut client) in clients.into_iter().enumerate() {
        assert!(is_closed(&mut client), "client {index}");
    }
    bench.wait_for_lines();
}

#[test]
fn connections_after_the_reload_stay() {
    let bench = Bench::start();
    // One that has an answer has been accepted before the reload.
    let kept = "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut old = client(bench.server.port(), kept, "served");
    bench.server.signal(Signal::SIGHUP);
    assert!(is_closed(&mut old));
    let mut young = client(bench.server.port(), "", "");
    let log = || bench.server.log("error.log");
    assert!(wait_for(|| log().contains("1 connections are closed").then_some(())).is_some());
    young
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    young.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("served"), "{answer}");
}
