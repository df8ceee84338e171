//! Tests of interim responses: `103 Early Hints` to the client, `100 Continue` for uploads.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

use turnpike_testkit::{Origin, Server, Step, check};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\
                     X-Accel-Buffering: no\r\nConnection: close\r\n\r\n";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const HINTED: &str = "HTTP/1.1 103 Early Hints\nLink: </a.css>; rel=preload\n\n";

const DONE: &str = "HTTP/1.1 200 OK\n*\n\nok(closed)";

fn server(port: u16, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            log_format sent '$status $body_bytes_sent.';
            access_log %FOLDER%/access.log sent;
            proxy_cache_path m keys_zone=m:1m memory;
            upstream u {{ server 127.0.0.1:{port}; keepalive 4; }}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass http://u; {directives} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// Directives, the client's version, the server's responses, and the responses before the final
/// one.
const PASSED: &[(&str, &str, &[&str], &str)] = &[
    ("early_hints 1;", "1.1", &[HINTS, OK], HINTED),
    (
        "early_hints $arg_a $arg_hints;",
        "1.1",
        &[HINTS, OK],
        HINTED,
    ),
    ("early_hints 1; proxy_cache m;", "1.1", &[HINTS, OK], HINTED),
    ("early_hints 1;", "1.0", &[HINTS, OK], ""),
    ("early_hints 0;", "1.1", &[HINTS, OK], ""),
    ("", "1.1", &[HINTS, OK], ""),
    (
        "early_hints 1; proxy_hide_header Link;",
        "1.1",
        &[HINTS, OK],
        "",
    ),
    (
        "early_hints 1;",
        "1.1",
        &["HTTP/1.1 102 Processing\r\nA: b\r\n\r\n", OK],
        "",
    ),
    (
        "early_hints 1;",
        "1.1",
        &["HTTP/1.1 100 Continue\r\n\r\n", OK],
        "",
    ),
];

#[test]
fn hints_reach_clients_that_accept_them() {
    for (directives, version, answer, expected) in PASSED {
        let mut script = vec![Step::ReadHead];
        script.extend(answer.iter().map(Step::send));
        // The second request uses a kept connection, without a task.
        let twice = [script.clone(), script].concat();
        let origin = Origin::start(vec![twice]);
        let server = server(origin.port(), directives);
        for path in ["/1?hints=1", "/2?hints=1"] {
            let request = format!("GET {path} HTTP/{version}\nHost: x\nConnection: close\n\n");
            let expected = format!("{expected}{DONE}");
            check(&server, &[(directives, &request, &expected)]);
        }
        assert_eq!(origin.received().len(), 1, "{directives}");
        server.wait_for_log("access.log", "200 2.\n200 2.");
    }
}

/// A response that is stale at once, with links.
const LINKED: &str = "HTTP/1.1 200 OK\r\nX-Accel-Expires: @1\r\nLink: </2>; rel=next\r\n\
                      Link: </a.css>; rel=preload, </b>; rel=icon, <//c>; rel=\"x preconnect\"\r\n\
                      Content-Length: 3\r\n\r\nold";

const LEARNED: &str = "HTTP/1.1 103 Early Hints\n\
                       Link: </a.css>; rel=preload, <//c>; rel=\"x preconnect\"\n\n";

/// Directives, method and version of a request whose stored response is stale, and the responses
/// before the final one.
const FROM_CACHE: &[(&str, &str, &str, &str)] = &[
    (
        "proxy_cache_early_hints on; early_hints 1;",
        "GET",
        "1.1",
        LEARNED,
    ),
    (
        "proxy_cache_early_hints on; early_hints 1;",
        "GET",
        "1.0",
        "",
    ),
    (
        "proxy_cache_early_hints on; early_hints 1;",
        "HEAD",
        "1.1",
        "",
    ),
    (
        "proxy_cache_early_hints on; early_hints $arg_a;",
        "GET",
        "1.1",
        "",
    ),
    ("proxy_cache_early_hints on;", "GET", "1.1", ""),
    (
        "proxy_cache_early_hints on; early_hints 1; proxy_hide_header Link;",
        "GET",
        "1.1",
        "",
    ),
    ("early_hints 1;", "GET", "1.1", ""),
];

#[test]
fn a_cache_gives_hints_of_what_is_stale() {
    for (directives, method, version, hint) in FROM_CACHE {
        let script = [LINKED, OK].map(|answer| vec![Step::ReadHead, Step::send(answer)]);
        let origin = Origin::start(vec![script.concat()]);
        let server = server(origin.port(), &format!("proxy_cache m; {directives}"));
        // Nothing is known of what is not stored.
        assert_eq!(server.get("/").text(), "old");
        let request = format!("{method} / HTTP/{version}\nHost: x\nConnection: close\n\n");
        let done = match *method {
            "HEAD" => DONE.replace("ok(", "("),
            _ => DONE.to_owned(),
        };
        let name = format!("{method} {version} {directives}");
        check(&server, &[(&name, &request, &format!("{hint}{done}"))]);
    }
}

#[test]
fn hints_of_a_cache_come_before_the_answer_is_there() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let directives = "early_hints 1; proxy_cache m; proxy_cache_valid 1h; proxy_cache_lock on;
                      proxy_cache_early_hints on;";
    let server = server(listener.local_addr().unwrap().port(), directives);
    let (hinted, all_hinted) = channel();
    let origin = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(LINKED.as_bytes()).unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        all_hinted.recv().unwrap();
        stream.write_all(OK.as_bytes()).unwrap();
    });
    assert_eq!(server.get("/").text(), "old");
    // The first of them asks the server, the second waits for what the first gets.
    let mut peers = [server.connect(), server.connect()];
    for peer in &mut peers {
        peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(peer.response().status, 103);
    }
    hinted.send(()).unwrap();
    for peer in &mut peers {
        assert_eq!(peer.response().text(), "ok");
    }
    origin.join().unwrap();
}

#[test]
fn hints_come_before_the_answer_is_there() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let server = server(listener.local_addr().unwrap().port(), "early_hints 1;");
    let (sender, receiver) = channel();
    let origin = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..2 {
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            for _ in 0..2 {
                stream.write_all(HINTS.as_bytes()).unwrap();
                // The client has received them.
                receiver.recv().unwrap();
            }
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let mut peer = server.connect();
    for _ in 0..2 {
        peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        for _ in 0..2 {
            assert_eq!(peer.response().status, 103);
            sender.send(()).unwrap();
        }
        assert_eq!(peer.response().text(), "ok");
    }
    origin.join().unwrap();
}

#[test]
fn too_many_hints_are_dropped() {
    let many = format!(
        "HTTP/1.1 103 Early Hints\r\nA: {}\r\n\r\n",
        "b".repeat(3000)
    );
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(&many),
        Step::send(&many),
        Step::send(OK),
    ]]);
    let server = server(origin.port(), "early_hints 1;");
    let request = "GET / HTTP/1.1\nHost: x\nConnection: close\n\n";
    let expected = format!("HTTP/1.1 103 Early Hints\nA: bbb*\n\n{DONE}");
    check(&server, &[("too many", request, &expected)]);
    server.wait_for_log("error.log", "upstream sent too big early hints");
}

#[test]
fn a_client_that_expects_100_gets_it_before_its_body() {
    let answered = vec![Step::ReadHead, Step::ReadBytes(4), Step::send(OK)];
    for directives in ["", "proxy_request_buffering off;"] {
        let origin = Origin::start(vec![answered.clone()]);
        let server = server(origin.port(), directives);
        let mut peer = server.connect();
        let head =
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
        assert_eq!(peer.round(head).status, 100, "{directives}");
        assert_eq!(peer.round("body").text(), "ok", "{directives}");
        let came = String::from_utf8(origin.received()[0].clone()).unwrap();
        assert!(came.ends_with("\r\n\r\nbody"), "{came}");
        // This server has sent it, and does not request it from the upstream server.
        assert!(!came.contains("Expect"), "{came}");
    }
}
