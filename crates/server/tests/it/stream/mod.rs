//! Tests of `stream`: connections to a real server, sessions through reloads, and refused
//! configurations.

mod applications;
mod checks;
mod names;
mod places;
mod relays;
mod tls;
mod udp;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use turnpike_testkit::{Folder, Server, Signal, wait_for};

use crate::support::echo::echo;

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

fn round(client: &mut TcpStream, text: &str, expected: &str) {
    client.write_all(text.as_bytes()).unwrap();
    let mut answer = vec![0; expected.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}

fn all_of(client: &mut TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn sessions_outlive_reloads_and_the_lanes_that_serve_them() {
    let origin = echo();
    let text = |lanes: usize, listen: &str| {
        format!(
            "worker_processes {lanes}; error_log %FOLDER%/error.log info; events {{ }}
            stream {{
                log_format line '$connection $status $bytes_sent';
                access_log %FOLDER%/access.log line;
                server {{ listen {listen}; proxy_pass 127.0.0.1:{origin}; }}
            }}"
        )
    };
    let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text(2, "127.0.0.1:%PORT_A%"))
        .start();
    let mut clients: Vec<TcpStream> = (0..8).map(|_| connect(server.port_named("A"))).collect();
    for client in &mut clients {
        round(client, "before", "before");
    }
    // Another address, and one lane fewer.
    let other = text(1, "127.0.0.1:%PORT_B%");
    server.write_configuration(&other);
    server.signal(Signal::SIGHUP);
    server.wait_for_port("B");
    for client in &mut clients {
        round(client, "after", "after");
    }
    let mut fresh = connect(server.port_named("B"));
    round(&mut fresh, "fresh", "fresh");
    drop(clients);
    drop(fresh);
    wait_for(|| (server.log("access.log").matches(" 200 11\n").count() == 8).then_some(()))
        .expect("every session is logged");
    assert!(server.quit().success());
}

/// The start of a connection to `a.test` with TLS 1.2, h2 and http/1.1.
fn hello() -> Vec<u8> {
    let extensions = b"\0\0\0\x0b\0\x09\0\0\x06a.test\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1";
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0xc0, 0x2f, 1, 0, 0, extensions.len() as u8]);
    body.extend(extensions);
    let message = [&[1, 0, 0, body.len() as u8], body.as_slice()].concat();
    [&[22, 3, 1, 0, message.len() as u8], message.as_slice()].concat()
}

#[test]
fn hellos_are_read_before_the_connection_is_passed_on() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&SERVERS.replace("%ORIGIN%", &echo().to_string()))
        .start();
    let at = |name: &str| connect(server.port_named(name));
    let hello = hello();
    let mut whole = at("HELLO");
    whole.write_all(&hello).unwrap();
    assert_eq!(all_of(&mut whole), "a.test h2,http/1.1 TLSv1.2");
    let mut pieces = at("HELLO");
    pieces.set_nodelay(true).unwrap();
    for piece in hello.chunks(40) {
        thread::sleep(Duration::from_millis(5));
        pieces.write_all(piece).unwrap();
    }
    assert_eq!(all_of(&mut pieces), "a.test h2,http/1.1 TLSv1.2");
    let mut other = at("HELLO");
    other.write_all(b"EHLO").unwrap();
    assert_eq!(all_of(&mut other), "  ");
    let mut seen = at("SEEN");
    seen.write_all(&hello).unwrap();
    let mut passed = vec![0; hello.len()];
    seen.read_exact(&mut passed).unwrap();
    assert_eq!(passed, hello, "it is passed on unchanged");
    round(&mut seen, "more", "more");
    let mut short = at("SHORT");
    short.write_all(&hello).unwrap();
    // Unread bytes turn the end into a reset.
    assert_eq!(short.read(&mut [0; 8]).unwrap_or(0), 0);
    server.wait_for_log("error.log", "preread buffer full");
}

/// Servers with one function each. `%ORIGIN%` is the port of an echo server.
const SERVERS: &str = "error_log %FOLDER%/error.log info; events { }
    http { server { listen 127.0.0.1:%PORT_HTTP%; return 200 http; } }
    stream {
        map $server_port $answer { %PORT_TEXT% text; default none; }
        num_map $server_port $is_low { default no; 0-1023 yes; }
        geo $place { 127.0.0.0/8 here; default there; }
        split_clients $remote_addr $half { 100% all; }
        server { listen 127.0.0.1:%PORT_TEXT%; return '$answer $place $half$is_low$status'; }
        server { listen 127.0.0.1:%PORT_DENY%; deny 127.0.0.1; return no; }
        server {
            listen 127.0.0.1:%PORT_HEAD% proxy_protocol;
            return '$proxy_protocol_addr $remote_addr';
        }
        limit_conn_zone $binary_remote_addr zone=each:32k;
        server {
            listen 127.0.0.1:%PORT_REAL% proxy_protocol;
            set_real_ip_from 127.0.0.0/8;
            deny 192.0.2.9;
            set $ends $remote_addr:$realip_remote_addr;
            return $ends;
        }
        server {
            listen 127.0.0.1:%PORT_ONE%;
            limit_conn each 1;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_HELLO%;
            ssl_preread on;
            set $name $ssl_preread_server_name;
            return '$name $ssl_preread_alpn_protocols $ssl_preread_protocol';
        }
        server {
            listen 127.0.0.1:%PORT_SHORT%;
            ssl_preread on;
            preread_buffer_size 42;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_SEEN%;
            ssl_preread on;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_IDLE%;
            proxy_timeout 100ms;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
        server {
            listen 127.0.0.1:%PORT_HALF%;
            proxy_half_close on;
            proxy_pass 127.0.0.1:%ORIGIN%;
        }
    }";

#[test]
fn servers_answer_refuse_and_choose_as_configured() {
    let origin = echo();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&SERVERS.replace("%ORIGIN%", &origin.to_string()))
        .start();
    let at = |name: &str| connect(server.port_named(name));
    assert_eq!(all_of(&mut at("TEXT")), "text here allno000");
    assert_eq!(all_of(&mut at("DENY")), "");
    server.wait_for_log("error.log", "access forbidden by rule, client: 127.0.0.1");
    let mut head = at("HEAD");
    head.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n")
        .unwrap();
    assert_eq!(all_of(&mut head), "192.0.2.1 127.0.0.1");
    for (client, answer) in [("192.0.2.8", "192.0.2.8:127.0.0.1"), ("192.0.2.9", "")] {
        let mut real = at("REAL");
        let header = format!("PROXY TCP4 {client} 192.0.2.2 1 2\r\n");
        real.write_all(header.as_bytes()).unwrap();
        assert_eq!(all_of(&mut real), answer);
    }
    let mut first = at("ONE");
    round(&mut first, "one", "one");
    assert_eq!(all_of(&mut at("ONE")), "");
    server.wait_for_log("error.log", "limiting connections by zone \"each\"");
    drop(first);
    let mut broken = at("HEAD");
    broken.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(broken.read(&mut [0; 8]).unwrap_or(0), 0);
    server.wait_for_log("error.log", "broken header: \"GET / HTTP/1.1");
    let mut idle = at("IDLE");
    round(&mut idle, "x", "x");
    assert_eq!(all_of(&mut idle), "");
    server.wait_for_log(
        "error.log",
        "connection timed out (110: Connection timed out)",
    );
    let mut half = at("HALF");
    half.write_all(b"last").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(all_of(&mut half), "last");
    let mut http = at("HTTP");
    http.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(all_of(&mut http).ends_with("\r\n\r\nhttp"));
}

/// Configurations of `stream`, and their errors.
const REFUSED: &[(&str, &str)] = &[
    (
        "proxy_protocol_v2_tlv 0x20 x;",
        "invalid TLV type \"0x20\" in",
    ),
    (
        "proxy_protocol_v2_tlv 0xe0 x; proxy_protocol_v2_tlv 0xE0 y;
        server { listen 127.0.0.1:1; proxy_pass 127.0.0.1:2; }",
        "duplicate TLV type \"0xE0\" in",
    ),
    (
        "server { return a; }",
        "no \"listen\" is defined for server in",
    ),
    (
        "server { listen 127.0.0.1; return a; }",
        "no port in \"127.0.0.1\"",
    ),
    (
        "server { listen 1 udp proxy_protocol; return a; }",
        "\"proxy_protocol\" parameter is incompatible with \"udp\"",
    ),
    (
        "server { listen 1 udp; listen 1 udp; return a; }",
        "a duplicate listen 0.0.0.0:1",
    ),
    (
        "server { listen 1 default_server; return a; }
         server { listen 1 default_server; return b; }",
        "a duplicate default server for 0.0.0.0:1",
    ),
    (
        "server { listen 1; return a; proxy_pass 127.0.0.1:1; }",
        "directive is duplicate",
    ),
    (
        "server { listen 1; proxy_pass a.test; }",
        "no port in upstream \"a.test\"",
    ),
    (
        "upstream u { server 127.0.0.1; } server { listen 1; proxy_pass u; }",
        "no port in upstream \"127.0.0.1\"",
    ),
    (
        "access_log /dev/null; server { listen 1; return a; }",
        "log format is not specified",
    ),
    (
        "num_map $msec $a { 5-1 b; } server { listen 1; return $a; }",
        "invalid number or range \"5-1\"",
    ),
    (
        "num_map $msec $a { 5 b; 05 c; } server { listen 1; return $a; }",
        "conflicting parameter \"05\"",
    ),
    (
        "server { listen 1; return $nowhere; }",
        "unknown \"nowhere\" variable",
    ),
    (
        "upstream u { least_time header; server 127.0.0.1:1; }",
        "invalid value \"header\"",
    ),
    (
        "upstream u { random two least_time=header; server 127.0.0.1:1; }",
        "invalid parameter \"least_time=header\"",
    ),
];

#[test]
fn impossible_settings_are_refused_with_their_place() {
    let folder = Folder::create().unwrap();
    let file = folder.path().join("nginx.conf");
    for (stream, expected) in REFUSED {
        let text = format!("events {{ }}\nstream {{ {stream} }}\n");
        folder.write("nginx.conf", &text).unwrap();
        let tested = Command::new(env!("CARGO_BIN_EXE_turnpike"))
            .args(["-t", "-e", "/dev/null", "-p"])
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&tested.stderr);
        assert!(!tested.status.success(), "{stream}");
        assert!(stderr.contains(expected), "{stream}: {stderr}");
    }
}
