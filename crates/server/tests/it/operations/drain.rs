//! Tests of a graceful end: answers to clients, and no aborted connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::support::wait_for;
use nix::libc::{SIGCONT, SIGSTOP};
use turnpike_lane::sys::signal;
use turnpike_testkit::{DEADLINE, Server, Signal};

const CONFIGURATION: &str = "
%MAIN%
error_log %FOLDER%/error.log notice;
events { }
http {
    keepalive_timeout 1h;
    client_header_timeout 1h;
    server {
        listen 127.0.0.1:%PORT%;
        location / { return 200 served; }
        location /slow { limit_rate 30; return 200 slowly; }
    }
}";

fn server(main: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("%MAIN%", main))
        .start()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
}

/// Reads to the end of the body.
fn answer(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.ends_with("served") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

/// Waits until `count` connections wait for a request.
fn wait_for_waiting(server: &Server, count: u64) {
    let socket = server.folder().join("pid.control");
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
            .args(["connections", "--json", "--socket"])
            .arg(&socket)
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if answer["total"]["waiting"] == count {
            return;
        }
        assert!(std::time::Instant::now() < end, "{answer}");
    }
}

#[test]
fn answers_close_while_connections_are_still_accepted() {
    let server = server("shutdown_delay 1h;");
    let mut kept = connect(&server);
    ask(&mut kept);
    assert!(answer(&mut kept).contains("Connection: keep-alive"));
    server.signal(Signal::SIGQUIT);
    server.wait_for_log("error.log", "accepting connections for 3600000ms more");
    let ask_anew = || {
        let mut fresh = connect(&server);
        ask(&mut fresh);
        let is_last = answer(&mut fresh).contains("Connection: close");
        if is_last {
            assert_eq!(fresh.read(&mut [0]).unwrap(), 0);
        }
        is_last
    };
    // The lane notices it a little later.
    let end = std::time::Instant::now() + DEADLINE;
    while !ask_anew() {
        assert!(std::time::Instant::now() < end);
    }
    assert!(ask_anew() && ask_anew());
    ask(&mut kept);
    assert!(answer(&mut kept).contains("Connection: close"));
    assert_eq!(kept.read(&mut [0]).unwrap(), 0);
}

#[test]
fn the_end_of_the_delay_ends_the_server() {
    let mut server = server("shutdown_delay 1ms;");
    server.signal(Signal::SIGQUIT);
    assert!(server.wait().success());
    assert!(
        server
            .output()
            .contains("accepting connections for 1ms more")
    );
}

#[test]
fn requests_in_transit_at_the_end_are_answered() {
    let mut server = server("");
    let (mut idle, mut silent) = (connect(&server), connect(&server));
    ask(&mut idle);
    answer(&mut idle);
    wait_for_waiting(&server, 2);
    let serving = i32::try_from(server.serving_pids()[0]).unwrap();
    signal::send(serving, SIGSTOP).unwrap();
    ask(&mut idle);
    ask(&mut silent);
    let mut queued = connect(&server);
    ask(&mut queued);
    server.signal(Signal::SIGQUIT);
    server.wait_for_log("error.log", "SIGQUIT");
    signal::send(serving, SIGCONT).unwrap();
    for stream in [&mut idle, &mut silent, &mut queued] {
        // A connection that was served before the lane noticed the end is kept for a short time.
        answer(stream);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
    assert!(server.wait().success());
}

#[test]
fn idle_clients_are_closed_and_not_reset() {
    let mut server = server("");
    let (mut idle, mut silent) = (connect(&server), connect(&server));
    ask(&mut idle);
    answer(&mut idle);
    wait_for_waiting(&server, 2);
    server.signal(Signal::SIGQUIT);
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert!(server.wait().success());
}

#[test]
fn new_clients_during_the_drain_are_refused_and_not_reset() {
    for main in ["", "shutdown_delay 1ms;"] {
        let mut server = server(&format!("worker_processes 2; {main}"));
        let mut slow = connect(&server);
        slow.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        // Its response is in progress when the drain begins.
        assert_eq!(slow.read(&mut [0]).unwrap(), 1);
        server.signal(Signal::SIGQUIT);
        server.wait_for_log("error.log", "gracefully shutting down");
        let end = std::time::Instant::now() + DEADLINE;
        loop {
            match TcpStream::connect(("127.0.0.1", server.port())) {
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
                    break;
                }
                // The last connection that could be accepted: it is served, or closed in order.
                Ok(mut late) => {
                    late.set_read_timeout(Some(DEADLINE)).unwrap();
                    ask(&mut late);
                    late.read_to_end(&mut Vec::new()).unwrap();
                }
            }
            assert!(std::time::Instant::now() < end);
        }
        let mut rest = String::new();
        slow.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("slowly"), "{rest}");
        assert!(server.wait().success());
    }
}

/// A location for a balancer's checks, in each protocol in which it may ask.
const READINESS: &str = "
%MAIN%
error_log %FOLDER%/error.log notice;
events { }
http {
    keepalive_timeout 1h;
    client_header_timeout 1h;
    access_log off;
    server {
        listen 127.0.0.1:%PORT%;
        error_page 503 /sorry;
        location = /healthz { health; }
        location / { return 200 served; }
        location /slow { limit_rate 30; return 200 slowly; }
    }
}";

fn checked(stream: &mut TcpStream, method: &str) -> String {
    let request = format!("{method} /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 1024];
    let ends = |text: &str| match method {
        "HEAD" => text.ends_with("\r\n\r\n"),
        _ => text.ends_with("ok\n") || text.ends_with("draining\n") || text.ends_with("html>\r\n"),
    };
    while !ends(&text) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

/// `turnpike status --ready` of a server.
fn is_ready(server: &Server) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .args(["status", "--ready", "--socket"])
        .arg(server.folder().join("pid.control"))
        .output()
        .unwrap();
    output.status.success()
}

#[test]
fn a_health_check_fails_from_the_begin_of_a_drain() {
    for main in ["shutdown_delay 1h;", ""] {
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&READINESS.replace("%MAIN%", main))
            .start();
        for (method, expected) in [
            ("GET", "HTTP/1.1 200 OK\r\n"),
            ("HEAD", "HTTP/1.1 200 OK\r\n"),
            ("POST", "HTTP/1.1 405 Not Allowed\r\n"),
        ] {
            let got = checked(&mut connect(&server), method);
            assert!(got.starts_with(expected), "{method}: {got}");
        }
        wait_for("the control socket", || is_ready(&server));
        // The drain waits for this response.
        let mut slow = connect(&server);
        slow.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        assert_eq!(slow.read(&mut [0]).unwrap(), 1);
        server.signal(Signal::SIGQUIT);
        let begun = match main {
            "" => "gracefully shutting down",
            _ => "accepting connections for 3600000ms more",
        };
        server.wait_for_log("error.log", begun);
        assert!(!is_ready(&server), "{main}");
        if main.is_empty() {
            continue; // nobody new is accepted
        }
        // The lane notices it a little later.
        let mut got = String::new();
        wait_for("the lane", || {
            got = checked(&mut connect(&server), "GET");
            got.starts_with("HTTP/1.1 503 ")
        });
        assert!(
            got.starts_with("HTTP/1.1 503 Service Temporarily Unavailable\r\n"),
            "{got}"
        );
        assert!(got.contains("\r\nConnection: close\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\ndraining\n"), "{got}");
    }
}
