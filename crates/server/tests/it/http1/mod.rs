//! Tests of HTTP/1: framing, keep-alive, limits, and slow, broken and hostile clients.

mod connections;
mod host;
mod request_bodies;
mod rfc9110;
mod rfc9112;
mod strictness;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use turnpike_testkit::{DEADLINE, Server, check, clients};

/// More than the kernel buffers for a client that does not read.
const LARGE_BYTES: usize = 24 << 20;

/// More than a second's share of what /paced/ allows, which is sent at once.
const PACED_BYTES: usize = 250 << 10;

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log info;
events { worker_connections 64; }
http {
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        server_tokens off;
        client_header_timeout 1s;
        client_body_timeout 1s;
        send_timeout 1s;
        client_max_body_size 100;
        large_client_header_buffers 2 1k;
        location / { }
        location /ok { return 200 ok; }
        location /big-body { client_max_body_size 1m; return 200 took; }
        location /brief { keepalive_timeout 0; return 200 brief; }
        location /twice { keepalive_requests 2; return 200 again; }
        location /slow/ { alias %FOLDER%/html/; limit_rate 20k; }
        location /paced/ { alias %FOLDER%/html/; limit_rate 200k; }
        location /loop { error_page 404 /loop; }
        location /header { keepalive_timeout 5s 7s; return 200 header; }
    }
    server {
        listen 127.0.0.1:%PORT%;
        server_name other;
        return 200 other;
    }
}";

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/a", "0123456789")
        .file("html/large", vec![b'x'; LARGE_BYTES])
        .file("html/paced", vec![b'x'; PACED_BYTES])
        .start()
}

/// Requests, and the answers up to the close of the connection.
const EXCHANGES: &[(&str, &str, &str)] = &[
    (
        "one request after another",
        "GET /a HTTP/1.1\nHost: x\n\nGET /ok HTTP/1.1\nHost: x\nConnection: close\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: keep-alive\n*\n\n0123456789HTTP/1.1 200 OK\n*\n\
         Connection: close\n\nok\n(closed)",
    ),
    (
        "HTTP/1.0 is closed",
        "GET /ok HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: close\n\nok\n(closed)",
    ),
    ("HTTP/0.9 has no head", "GET /a\n", "0123456789\n(closed)"),
    (
        "a body of known length is passed over",
        "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
         GET /ok HTTP/1.0\r\n\r\n",
        "HTTP/1.1 200 OK\n*\n\nokHTTP/1.1 200 OK\n*\n\nok\n(closed)",
    ),
    (
        "a chunked body is passed over",
        "POST /ok HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n\
         3\nabc\n0\n\nGET /ok HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\n\nokHTTP/1.1 200 OK\n*\n\nok\n(closed)",
    ),
    (
        "an expected 100 is sent",
        "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\
         Connection: close\r\n\r\nhi",
        "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n*\n\nok\n(closed)",
    ),
    (
        "the host chooses the server",
        "GET / HTTP/1.1\nHost: OTHER:80\nConnection: close\n\n",
        "HTTP/1.1 200 OK\n*\n\nother\n(closed)",
    ),
    (
        "the absolute form wins over Host",
        "GET http://other/ HTTP/1.1\nHost: x\nConnection: close\n\n",
        "HTTP/1.1 200 OK\n*\n\nother\n(closed)",
    ),
    (
        "keepalive_timeout 0 keeps none",
        "GET /brief HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: close\n\nbrief\n(closed)",
    ),
    (
        "keepalive_requests counts",
        "GET /twice HTTP/1.1\nHost: x\n\nGET /twice HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: keep-alive\n\nagainHTTP/1.1 200 OK\n*\n\
         Connection: close\n\nagain\n(closed)",
    ),
    (
        "the Keep-Alive field is sent where it is asked for",
        "GET /header HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: keep-alive\nKeep-Alive: timeout=7\n\nheader",
    ),
    (
        "an error page that leads to itself ends",
        "GET /loop HTTP/1.0\n\n",
        "HTTP/1.1 404 Not Found\n*\n(closed)",
    ),
];

const BAD: &str =
    "HTTP/1.1 400 Bad Request\n*\nConnection: close\n\n<html>\n*\n</html>\n\n(closed)";

/// Refused requests: each gets a status and a closed connection, and the bytes after it are never
/// read as a request.
const REFUSED: &[(&str, &str, &str)] = &[
    ("no method", " / HTTP/1.1\n\n", BAD),
    (
        "a lower-case method",
        "get / HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 501 Not Implemented\n*\n(closed)",
    ),
    (
        "a method that is no token",
        "g( / HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    ("no host", "GET / HTTP/1.1\n\n", BAD),
    ("two hosts", "GET / HTTP/1.1\nHost: x\nHost: y\n\n", BAD),
    ("a bad host", "GET / HTTP/1.1\nHost: x/y\n\n", BAD),
    ("a climb above the root", "GET /../a HTTP/1.0\n\n", BAD),
    ("an escaped NUL", "GET /%00 HTTP/1.0\n\n", BAD),
    ("a broken escape", "GET /%zz HTTP/1.0\n\n", BAD),
    (
        "a version of another protocol",
        "GET / HTTP/2.0\n\n",
        "HTTP/1.1 505 HTTP Version Not Supported\n*\n(closed)",
    ),
    (
        "two lengths",
        "POST /ok HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2\n\nab",
        BAD,
    ),
    (
        "length and chunked at once",
        "POST /ok HTTP/1.1\nHost: x\nContent-Length: 4\nTransfer-Encoding: chunked\n\n\
         0\n\nGET /ok HTTP/1.0\n\n",
        BAD,
    ),
    (
        "a coding that does not tell the end",
        "POST /ok HTTP/1.1\nHost: x\nTransfer-Encoding: gzip\n\n",
        BAD,
    ),
    (
        "an unknown coding",
        "POST /ok HTTP/1.1\nHost: x\nTransfer-Encoding: gzip, chunked\n\n",
        "HTTP/1.1 501 Not Implemented\n*\n(closed)",
    ),
    (
        "a body that is announced too large",
        "POST /ok HTTP/1.1\nHost: x\nContent-Length: 101\n\n",
        "HTTP/1.1 413 Request Entity Too Large\n*\nConnection: close\n*\n(closed)",
    ),
    (
        "a broken chunk",
        "POST /ok HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\nzz\n\
         GET /ok HTTP/1.0\n\n",
        BAD,
    ),
];

#[test]
fn exchanges_are_as_expected() {
    check(&server(), EXCHANGES);
}

#[test]
fn malformed_requests_are_refused_and_closed() {
    let server = server();
    check(&server, REFUSED);
    let long = "x".repeat(2000);
    let line = server.exchange(format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(
        line.starts_with(b"HTTP/1.1 414 "),
        "{}",
        String::from_utf8_lossy(&line)
    );
    let field = server.exchange(format!("GET / HTTP/1.1\r\nHost: x\r\nA: {long}\r\n\r\n"));
    assert!(
        field.starts_with(b"HTTP/1.1 400 "),
        "{}",
        String::from_utf8_lossy(&field)
    );
}

#[test]
fn heads_and_bodies_may_come_byte_by_byte() {
    let server = server();
    let mut peer = server.connect();
    for byte in b"POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" {
        peer.send([*byte]);
    }
    assert_eq!(peer.response().text(), "ok");
    for byte in b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n" {
        peer.send([*byte]);
    }
    assert_eq!(peer.response().text(), "0123456789");
}

#[test]
fn clients_that_pause_too_long_are_cut() {
    let server = server();
    let mut silent = server.connect();
    let mut half = server.connect();
    half.send("GET / HT");
    let mut body = server.connect();
    body.send("POST /big-body HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nabc");
    let _ = body.response();
    assert!(silent.is_closed());
    assert!(half.is_closed());
}

#[test]
fn a_reader_that_stops_is_cut_and_the_others_are_served() {
    let server = server();
    let mut stuck = server.connect();
    stuck.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.get("/ok").text(), "ok");
    server.wait_for_log("error.log", "client timed out");
    // Bytes sent before the time-out still come, followed by an early end.
    let mut bytes = Vec::new();
    let _ = stuck.stream().read_to_end(&mut bytes);
    assert!(bytes.len() < LARGE_BYTES, "{} bytes came", bytes.len());
}

#[test]
fn large_and_limited_files_come_whole() {
    let server = server();
    assert_eq!(server.get("/large").body.len(), LARGE_BYTES);
    let url = format!("http://127.0.0.1:{}/slow/a", server.port());
    assert_eq!(clients::curl(&["-s", &url]), "0123456789");
}

#[test]
fn idle_connections_make_room_for_new_ones() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "error_log %FOLDER%/error.log info;
             events { worker_connections 8; }
             http { server { listen 127.0.0.1:%PORT%; return 200 ok; } }",
        )
        .start();
    let mut peers: Vec<_> = (0..30).map(|_| server.connect()).collect();
    for peer in &mut peers {
        assert_eq!(peer.round("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text(), "ok");
    }
    server.wait_for_log("error.log", "worker_connections are not enough");
}

#[test]
fn running_out_of_descriptors_neither_spins_nor_kills() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "worker_rlimit_nofile 40;
             events { worker_connections 1024; multi_accept on; }
             http { server { listen 127.0.0.1:%PORT%; return 200 ok; } }",
        )
        .start();
    let mut peers: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for peer in &mut peers {
        assert_eq!(peer.round("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text(), "ok");
    }
    server.wait_for_log("error.log", "accept4() failed (24: Too many open files)");
    assert_eq!(server.serving_pids().len(), 1);
}

#[test]
fn a_client_that_has_sent_its_last_gets_the_whole_of_a_limited_response() {
    let server = server();
    let request = b"GET /paced/paced HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for reads_first in [false, true] {
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        client.write_all(request).unwrap();
        let mut text = vec![0; 64];
        let first = if reads_first {
            client.read(&mut text).unwrap()
        } else {
            0
        };
        text.truncate(first);
        client.shutdown(Shutdown::Write).unwrap();
        client.read_to_end(&mut text).unwrap();
        let head = text.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        assert_eq!(text.len() - head - 4, PACED_BYTES, "{reads_first}");
    }
}
