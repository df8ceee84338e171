//! Tests of clients' connections: pipelines, unwanted bodies, deadlines.

use std::fmt::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use turnpike_testkit::{DEADLINE, Origin, Server, Step, check};

/// More requests than are answered in three turns.
const PIPELINED: usize = 100;

const CONFIGURATION: &str = "
events { }
http {
    keepalive_timeout 1h;
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        client_max_body_size 10;
        error_page 413 /413.txt;
        location /p { return 200 \"$uri,\"; }
        location /short { keepalive_timeout 1ms; return 204; }
    }
}";

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/413.txt", "too large")
        .start()
}

#[test]
fn every_request_of_a_pipeline_is_answered_once_and_in_order() {
    let (mut requests, mut answers) = (String::new(), String::new());
    for number in 0..PIPELINED {
        write!(requests, "GET /p{number} HTTP/1.1\nHost: x\n\n").unwrap();
        write!(answers, "HTTP/1.1 200 OK\n*\n\n/p{number},").unwrap();
    }
    requests.push_str("GET /p HTTP/1.0\n\n");
    answers.push_str("HTTP/1.1 200 OK\n*\n\n/p,\n(closed)");
    check(&server(), &[("a pipeline", &requests, &answers)]);
}

#[test]
fn a_body_too_large_is_answered_by_the_page_for_it() {
    let request = "POST /p HTTP/1.1\nHost: x\nContent-Length: 11\n\n0123456789a";
    let answer =
        "HTTP/1.1 413 Request Entity Too Large\n*\nConnection: close\n*\ntoo large\n(closed)";
    check(&server(), &[("413", request, answer)]);
}

#[test]
fn a_shorter_keep_alive_timeout_applies_from_its_request_on() {
    use std::io::{Read, Write};
    let server = server();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    // A round of the wheel takes a minute, well beyond the test's time limit.
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    for path in ["/p", "/short"] {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        // This makes the server answer the two one by one.
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_redirect_without_a_host_names_the_socket_it_came_to() {
    use std::io::{Read, Write};
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "events { }
             http {
                 server {
                     listen 127.0.0.1:%PORT%;
                     listen unix:%FOLDER%/socket;
                     server_name own;
                     location / { return 301 /to; }
                     location /own { server_name_in_redirect on; return 301 /to; }
                     location /relative { absolute_redirect off; return 301 /to; }
                 }
             }",
        )
        .start();
    let socket = server.folder().join("socket");
    let named = format!("http://unix:{}/to", socket.display());
    let cases = [
        ("/", "", named.as_str()),
        ("/", "Host: h\r\n", "http://h/to"),
        ("/own", "", "http://own/to"),
        ("/relative", "", "/to"),
    ];
    for (path, fields, expected) in cases {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n{fields}\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = format!("\r\nLocation: {expected}\r\n");
        assert!(text.contains(&line), "{path} {fields}: {text}");
    }
}

#[test]
fn slow_heads_make_room_for_others() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "error_log %FOLDER%/error.log info;
             events { worker_connections 8; }
             http {
                 log_format slow '$status [$request]';
                 access_log %FOLDER%/access.log slow;
                 client_header_timeout 1h;
                 server { listen 127.0.0.1:%PORT%; return 200 ok; }
             }",
        )
        .start();
    let slow = |text: &str| {
        let mut peer = server.connect();
        peer.send(text);
        peer
    };
    let mut oldest = slow("GET /oldest HTTP/1.1\r\nHo");
    // The first connection must be the oldest for the server too.
    std::thread::sleep(Duration::from_millis(50));
    let silent = slow("");
    let others: Vec<_> = (0..6).map(|_| slow("GET /other HTTP/1.1\r\n")).collect();
    for _ in 0..3 {
        assert_eq!(server.get("/").text(), "ok");
    }
    assert!(oldest.is_closed());
    server.wait_for_log(
        "error.log",
        "8 worker_connections are not enough; connections closed to make room: 1 (slow to send \
         a request)",
    );
    server.wait_for_log("error.log", "client was too slow to send its request");
    server.wait_for_log("access.log", "408 [GET /oldest HTTP/1.1]");
    drop((silent, others));
}

#[test]
fn a_server_that_proxies_to_itself_keeps_serving() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "error_log %FOLDER%/error.log info;
             events { worker_connections 64; }
             http {
                 proxy_read_timeout 1h;
                 keepalive_timeout 1h;
                 server {
                     listen 127.0.0.1:%PORT%;
                     location / { proxy_pass http://127.0.0.1:%PORT%; }
                     location /own { return 200 ok; }
                 }
             }",
        )
        .start();
    for _ in 0..3 {
        assert_eq!(server.get("/").status, 500);
        assert_eq!(server.get("/own").text(), "ok");
    }
    server.wait_for_log("error.log", "[alert]");
    server.wait_for_log(
        "error.log",
        "64 worker_connections are not enough for another request to an upstream server",
    );
}

#[test]
fn a_few_connections_are_left_by_those_that_wait_for_servers() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "error_log %FOLDER%/error.log info;
             events {{ worker_connections 32; }}
             http {{
                 proxy_read_timeout 1h;
                 keepalive_timeout 1h;
                 server {{
                     listen 127.0.0.1:%PORT%;
                     location / {{ proxy_pass http://127.0.0.1:{}; }}
                     location /own {{ return 200 ok; }}
                 }}
             }}",
            origin.port()
        ))
        .start();
    let waiting: Vec<_> = (1..=30)
        .map(|count| {
            let mut peer = server.connect();
            peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            origin.wait_for_connections(count);
            peer
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(server.get("/").status, 500);
        assert_eq!(server.get("/own").text(), "ok");
    }
    assert_eq!(origin.received().len(), waiting.len());
}
