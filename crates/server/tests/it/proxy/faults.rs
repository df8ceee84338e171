//! Tests of the client's response when an upstream server refuses, breaks, sends malformed data or
//! stalls, and of clients that leave.

use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{Origin, Server, Step, check};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const BAD_GATEWAY: &str = "HTTP/1.1 502 Bad Gateway\n*\n\n<html>\n*\n</html>\n\n(closed)";

/// A server whose `upstream u` has these ports in their order.
fn server(ports: &[u16], directives: &str) -> Server {
    let mut servers = String::new();
    for (index, port) in ports.iter().enumerate() {
        let backup = if index == 0 { "" } else { "backup" };
        servers.push_str(&format!("server 127.0.0.1:{port} {backup} max_fails=0;"));
    }
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            log_format up '$status $upstream_status $upstream_bytes_received.';
            access_log %FOLDER%/access.log up;
            upstream u {{ {servers} keepalive 4; }}
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

fn script(response: &str) -> Vec<Step> {
    vec![Step::ReadHead, Step::send(response)]
}

const GET: &str = "GET / HTTP/1.1\nHost: x\nConnection: close\n\n";

#[test]
fn a_server_that_refuses_is_502() {
    let refused = RefusedPort::new().unwrap();
    let server = server(&[refused.number()], "");
    check(&server, &[("refused", GET, BAD_GATEWAY)]);
    server.wait_for_log(
        "error.log",
        "connect() failed (111: Connection refused) while connecting to upstream, client: \
         127.0.0.1, server: , request: \"GET / HTTP/1.1\", upstream: \"http://127.0.0.1:",
    );
    server.wait_for_log("access.log", "502 502 0.");
}

/// The server's bytes before its close, and the log message about them.
const BROKEN_HEADS: &[(&str, &str)] = &[
    (
        "",
        "upstream prematurely closed connection while reading response header from upstream",
    ),
    (
        "HTTP/1.1 200 OK\r\nA: b\r\n",
        "upstream prematurely closed connection while reading response header from upstream",
    ),
    (
        "220 mail ready\r\n\r\n",
        "upstream sent no valid HTTP/1.0 header",
    ),
    (
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "upstream sent invalid header",
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "upstream sent duplicate header line",
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "upstream sent invalid \"Content-Length\" header",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n",
        "upstream sent unknown \"Transfer-Encoding\"",
    ),
    (
        "HTTP/1.1 101 Hello\r\n\r\n",
        "upstream sent unexpected status 101",
    ),
];

#[test]
fn a_malformed_head_is_502() {
    for (response, logged) in BROKEN_HEADS {
        let origin = Origin::start(vec![script(response)]);
        let server = server(&[origin.port()], "");
        check(&server, &[(logged, GET, BAD_GATEWAY)]);
        server.wait_for_log("error.log", logged);
    }
}

#[test]
fn a_head_that_is_too_large_is_502() {
    let response = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(5000));
    let origin = Origin::start(vec![script(&response)]);
    let server = server(&[origin.port()], "");
    check(&server, &[("too large", GET, BAD_GATEWAY)]);
    server.wait_for_log(
        "error.log",
        "upstream sent too big header while reading response header from upstream",
    );
}

#[test]
fn a_reset_is_502() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::Reset]]);
    let server = server(&[origin.port()], "");
    check(&server, &[("reset", GET, BAD_GATEWAY)]);
    server.wait_for_log("error.log", "(104: Connection reset by peer)");
}

#[test]
fn a_silent_server_is_504() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
    let server = server(&[origin.port()], "proxy_read_timeout 100ms;");
    let expected = "HTTP/1.1 504 Gateway Time-out\n*\n(closed)";
    check(&server, &[("silent", GET, expected)]);
    server.wait_for_log(
        "error.log",
        "upstream timed out (110: Connection timed out) while reading response header from \
         upstream",
    );
    server.wait_for_log("access.log", "504 504 0.");
}

/// A head in pieces, each long before the read time-out.
fn trickle() -> Vec<Step> {
    let mut steps = vec![Step::send("HTTP/1.1 200 OK\r\n")];
    for number in 0..50 {
        steps.push(Step::DelayMs(50));
        steps.push(Step::send(format!("X-{number}: x\r\n")));
    }
    steps.push(Step::send("Content-Length: 2\r\n\r\nok"));
    steps
}

#[test]
fn a_head_has_one_deadline_for_all_its_pieces() {
    let first = [vec![Step::ReadHead], trickle()].concat();
    let second = [script(OK), vec![Step::ReadHead], trickle()].concat();
    // On a new connection, and on a kept one.
    for (script, answers) in [(first, [504, 502]), (second, [200, 504])] {
        let origin = Origin::start(vec![script, vec![Step::ReadHead]]);
        let directives = "proxy_read_timeout 300ms; proxy_next_upstream off;";
        let server = server(&[origin.port()], directives);
        for status in answers {
            assert_eq!(server.get("/").status, status);
        }
        server.wait_for_log("access.log", "504 504 ");
        server.wait_for_log(
            "error.log",
            "upstream timed out (110: Connection timed out) while reading response header from \
             upstream",
        );
    }
}

/// Responses that break off, the part that the client gets, and the log message.
const BROKEN_BODIES: &[(&str, &str, &str)] = &[
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\n*\nContent-Length: 9\n*\n\nabc(closed)",
        "upstream prematurely closed connection while reading upstream",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\n*\nTransfer-Encoding: chunked\n*\n\n3\nabc\n\n(closed)",
        "upstream prematurely closed connection while reading upstream",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\n*\nTransfer-Encoding: chunked\n*\n\n3\nabc\n\n(closed)",
        "upstream sent invalid chunked response",
    ),
];

#[test]
fn a_body_that_breaks_off_closes_the_connection() {
    for (response, expected, logged) in BROKEN_BODIES {
        let origin = Origin::start(vec![script(response)]);
        let server = server(&[origin.port()], "");
        let request = "GET / HTTP/1.1\nHost: x\n\n";
        check(&server, &[(response, request, expected)]);
        server.wait_for_log("error.log", logged);
    }
}

#[test]
fn a_body_that_stalls_closes_the_connection() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        Step::ReadToEnd,
    ]]);
    let server = server(&[origin.port()], "proxy_read_timeout 100ms;");
    let expected = "HTTP/1.1 200 OK\n*\nContent-Length: 9\n*\n\nabc(closed)";
    check(
        &server,
        &[("stalls", "GET / HTTP/1.1\nHost: x\n\n", expected)],
    );
    server.wait_for_log("error.log", "upstream timed out");
}

#[test]
fn bytes_after_a_response_are_dropped() {
    let lying = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\
                 Content-Length: 4\r\n\r\nevil";
    let mut lie = script(lying);
    lie.push(Step::ReadToEnd);
    let origin = Origin::start(vec![lie, script(OK)]);
    let server = server(&[origin.port()], "");
    for name in ["surplus", "a connection of its own"] {
        let expected = "HTTP/1.1 200 OK\n*\n\nok(closed)";
        check(&server, &[(name, GET, expected)]);
    }
    assert_eq!(origin.received().len(), 2);
    server.wait_for_log("error.log", "upstream sent more data than specified");
}

#[test]
fn an_early_answer_to_an_upload_is_passed_on() {
    let answer = "HTTP/1.1 413 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    for directives in [
        "client_max_body_size 0;",
        "client_max_body_size 0; proxy_request_buffering off;",
    ] {
        let origin = Origin::start(vec![vec![
            Step::ReadHead,
            Step::send(answer),
            Step::ReadToEnd,
        ]]);
        let server = server(&[origin.port()], directives);
        let body = vec![b'x'; 8 << 20];
        let mut peer = server.connect();
        peer.send(format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ));
        // Bytes that are no longer read are lost, like the rest of the upload.
        peer.send(&body);
        let response = peer.response();
        assert_eq!(
            (response.status, response.text().as_str()),
            (413, "no"),
            "{directives}"
        );
    }
}

/// Early answers without a body of which the server makes another response, and its status.
const DISCARDED: &[(&str, u16)] = &[
    ("HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", 413),
    (
        "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /page\r\nContent-Length: 0\r\n\r\n",
        200,
    ),
    (
        "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n",
        413,
    ),
];

#[test]
fn a_connection_whose_request_was_not_sent_whole_gets_no_other_request() {
    for (answer, status) in DISCARDED {
        let first = [
            Step::ReadHead,
            Step::send(answer),
            Step::ReadHead,
            Step::send(OK),
        ];
        let origin = Origin::start(vec![first.to_vec(), script(OK)]);
        let configuration = format!(
            "events {{ }}
            http {{
                upstream u {{ server 127.0.0.1:{} max_fails=0; keepalive 4; }}
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{
                        proxy_pass http://u;
                        proxy_http_version 1.1;
                        proxy_set_header Connection '';
                        proxy_request_buffering off;
                        proxy_intercept_errors on;
                        error_page 413 /page;
                    }}
                    location = /page {{ return 200 page; }}
                }}
            }}",
            origin.port()
        );
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .start();
        let mut uploading = server.connect();
        uploading.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
        let response = uploading.response();
        assert_eq!((response.status, &*response.text()), (*status, "page"));
        let next = server.get("/next");
        assert_eq!((next.status, &*next.text()), (200, "ok"), "{answer}");
        let received = origin.received();
        assert_eq!(received.len(), 2, "{answer}");
        assert!(received[1].starts_with(b"GET /next "), "{answer}");
    }
}

/// Directives, the first server's action, the request's method, and the resulting status.
const NEXT: &[(&str, &str, &str, u16)] = &[
    ("", "", "GET", 200),
    ("proxy_next_upstream off;", "", "GET", 502),
    (
        "proxy_next_upstream invalid_header;",
        "junk\r\n\r\n",
        "GET",
        200,
    ),
    ("", "junk\r\n\r\n", "GET", 502),
    ("", "", "POST", 502),
    ("", "", "LOCK", 502),
    ("", "", "PATCH", 502),
    ("", "", "PUT", 200),
    ("", "", "DELETE", 200),
    ("proxy_next_upstream error non_idempotent;", "", "POST", 200),
    (
        "proxy_next_upstream http_503;",
        "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        "GET",
        200,
    ),
    (
        "",
        "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        "GET",
        503,
    ),
    (
        "proxy_next_upstream http_404;",
        "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        "GET",
        200,
    ),
    ("proxy_next_upstream_tries 1;", "", "GET", 502),
];

#[test]
fn the_next_server_is_tried_if_allowed() {
    for (directives, response, method, status) in NEXT {
        let bad = Origin::start(vec![script(response)]);
        let good = Origin::start(vec![script(OK)]);
        let server = server(&[bad.port(), good.port()], directives);
        let mut peer = server.connect();
        let came = peer.round(format!(
            "{method} / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        ));
        assert_eq!(came.status, *status, "{directives} {method} {response}");
        let asked = usize::from(*status == 200);
        assert_eq!(
            good.received().len(),
            asked,
            "{directives} {method} {response}"
        );
    }
}

#[test]
fn a_post_that_was_not_sent_may_go_to_the_next_server() {
    let good = Origin::start(vec![script(OK)]);
    let refused = RefusedPort::new().unwrap();
    let server = server(&[refused.number(), good.port()], "");
    let mut peer = server.connect();
    let came = peer.round("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(came.status, 200);
    server.wait_for_log("access.log", "200 502, 200 0, ");
}

#[test]
fn a_kept_connection_that_was_closed_is_no_failure() {
    let mut once = script(OK);
    once.push(Step::Reset);
    let origin = Origin::start(vec![once]);
    let server = server(&[origin.port()], "");
    for round in 0..4 {
        assert_eq!(server.get("/").status, 200, "round {round}");
    }
    assert_eq!(origin.received().len(), 4);
}

#[test]
fn servers_that_close_kept_connections_are_tried_once_each() {
    // Each answers on a new connection, and none on a kept one.
    let once = [script(OK), vec![Step::ReadHead]].concat();
    let origins = [(); 3].map(|()| Origin::start(vec![once.clone()]));
    let ports = origins.each_ref().map(Origin::port);
    let servers: String = ports
        .iter()
        .map(|port| format!("server 127.0.0.1:{port}; "))
        .collect();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "error_log %FOLDER%/error.log info;
            events {{ }}
            http {{
                log_format up '$status $upstream_addr $upstream_status.';
                access_log %FOLDER%/access.log up;
                upstream u {{ {servers} keepalive 4; }}
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{ proxy_pass http://u; }}
                }}
            }}"
        ))
        .start();
    for _ in 0..3 {
        assert_eq!(server.get("/").status, 200);
    }
    assert_eq!(server.get("/").status, 502);
    server.wait_for_log("access.log", ", u 502, 502, 502, 502.");
    server.wait_for_log("error.log", "no live upstreams");
    let asked = origins.each_ref().map(|origin| origin.received().len());
    assert_eq!(asked, [1, 1, 1]);
}

#[test]
fn a_client_that_goes_away_ends_the_request() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
    let server = server(&[origin.port()], "");
    let mut peer = server.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    origin.wait_for_connections(1);
    drop(peer);
    server.wait_for_log(
        "error.log",
        "client prematurely closed connection, so upstream connection is closed too",
    );
    server.wait_for_log("access.log", "499 ");
}

#[test]
fn a_server_may_finish_without_its_client() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::DelayMs(200),
        Step::send(OK),
        Step::ReadToEnd,
    ]]);
    let server = server(&[origin.port()], "proxy_ignore_client_abort on;");
    let mut peer = server.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    origin.wait_for_connections(1);
    drop(peer);
    server.wait_for_log("access.log", "200 200 ");
}

#[test]
fn a_file_that_cannot_be_made_lets_the_server_wait() {
    // More than the buffers of the kernel hold, which grow up to 10 MB.
    let body = "x".repeat(24 << 20);
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let origin = Origin::start(vec![script(&response)]);
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{
                    proxy_pass http://127.0.0.1:{};
                    proxy_temp_path %FOLDER%/temp;
                }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    std::fs::remove_dir_all(server.folder().join("temp")).unwrap();
    std::fs::write(server.folder().join("temp"), "in the way").unwrap();
    let mut peer = server.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_log("error.log", "failed (20: Not a directory)");
    assert_eq!(peer.response().body.len(), body.len());
}
