//! Tests of RFC 9112 for messages of clients and of upstream servers, in addition to other tables.
//! `docs/conformance.md` names the section of each row.

use crate::support::cache::Counting;
use turnpike_testkit::{Origin, Response, Server, Step, check};

const CONFIGURATION: &str = "
events { }
http {
    keepalive_requests 1000;
    server {
        listen 127.0.0.1:%PORT%;
        client_max_body_size 10;
        location / { return 200 ok; }
        location /value { return 200 <$http_a>; }
        location /closing { keepalive_timeout 0; return 200 closing; }
    }
}";

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .start()
}

const BAD: &str = "HTTP/1.1 400 Bad Request\n*\nConnection: close\n\n*\n</html>\n\n(closed)";
const NOT_IMPLEMENTED: &str = "HTTP/1.1 501 Not Implemented\n*\nConnection: close\n\n*\n\
                               </html>\n\n(closed)";
const TOO_LARGE: &str = "HTTP/1.1 413 Request Entity Too Large\n*\nConnection: close\n\n*\n\
                         </html>\n\n(closed)";
const NOT_ALLOWED: &str = "HTTP/1.1 405 Not Allowed\n*\nConnection: close\n*\n\n*\n\
                           </html>\n\n(closed)";

/// Requests that are refused, and whose connection is closed.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "a lone CR in a value",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
        BAD,
    ),
    (
        "a NUL in a value",
        "GET / HTTP/1.1\nHost: x\nA: b\0c\n\n",
        BAD,
    ),
    (
        "white space before the first field",
        "GET / HTTP/1.1\n A: b\nHost: x\n\n",
        BAD,
    ),
    (
        "a folded value",
        "GET / HTTP/1.1\nHost: x\nA: b\n c\n\n",
        BAD,
    ),
    (
        "a space before the colon",
        "GET / HTTP/1.1\nHost: x\nA : b\n\n",
        BAD,
    ),
    (
        "a space in the target",
        "GET /a b HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "an absolute form without a host",
        "GET http:///a HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "an https form without a host",
        "GET https:///a HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "user information in the absolute form",
        "GET http://me@x/a HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "user information in Host",
        "GET /a HTTP/1.1\nHost: me@x\n\n",
        BAD,
    ),
    (
        "an asterisk with another method",
        "GET * HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "an authority with another method",
        "GET x:80 HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "CONNECT",
        "CONNECT x:80 HTTP/1.1\nHost: x:80\n\n",
        NOT_ALLOWED,
    ),
    (
        "CONNECT without a port",
        "CONNECT x HTTP/1.1\nHost: x\n\n",
        BAD,
    ),
    (
        "a method longer than any",
        "AVERYLONGMETHODOFMORETHANTHIRTYTWOBYTES / HTTP/1.1\nHost: x\n\n",
        NOT_IMPLEMENTED,
    ),
    (
        "a length that is no number",
        "POST / HTTP/1.1\nHost: x\nContent-Length: +2\n\nab",
        BAD,
    ),
    (
        "a length beyond 64 bits",
        "POST / HTTP/1.1\nHost: x\nContent-Length: 99999999999999999999999\n\nab",
        BAD,
    ),
    (
        "a list of equal lengths",
        "POST / HTTP/1.1\nHost: x\nContent-Length: 2, 2\n\nab",
        BAD,
    ),
    (
        "chunked is not the last coding",
        "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked, gzip\n\n2\nab\n0\n\n",
        BAD,
    ),
    (
        "a parameter of chunked",
        "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked;a=b\n\n2\nab\n0\n\n",
        BAD,
    ),
    (
        "chunks by HTTP/1.0",
        "POST / HTTP/1.0\nTransfer-Encoding: chunked\nConnection: keep-alive\n\n2\nab\n0\n\n",
        BAD,
    ),
    (
        "a chunk size beyond 64 bits",
        "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n10000000000000002\nab\n0\n\n",
        BAD,
    ),
    (
        "a body too large is not waited for",
        "POST / HTTP/1.1\nHost: x\nContent-Length: 11\nExpect: 100-continue\n\n",
        TOO_LARGE,
    ),
];

#[test]
fn requests_are_refused_by_the_rfc() {
    check(&server(), REFUSED);
}

const OK: &str = "HTTP/1.1 200 OK\n*\nConnection: close\n\nok\n(closed)";
const OK_TWICE: &str = "HTTP/1.1 200 OK\n*\n\nokHTTP/1.1 200 OK\n*\n\nok\n(closed)";

/// Requests that are accepted.
const ANSWERED: &[(&str, &str, &str)] = &[
    (
        "an empty line before the request",
        "\nGET / HTTP/1.0\n\n",
        OK,
    ),
    (
        "octets beyond ASCII are opaque",
        "GET /value HTTP/1.0\nA: \u{e4}\u{20ac}\n\n",
        "HTTP/1.1 200 OK\n*\n\n<\u{e4}\u{20ac}>\n(closed)",
    ),
    (
        "white space around a value",
        "GET /value HTTP/1.0\nA: \t b c\t \n\n",
        "HTTP/1.1 200 OK\n*\n\n<b c>\n(closed)",
    ),
    (
        "a higher minor version",
        "GET / HTTP/1.9\nHost: x\n\nGET / HTTP/1.0\n\n",
        OK_TWICE,
    ),
    (
        "HTTP/1.0 expects no 100",
        "POST / HTTP/1.0\nContent-Length: 2\nExpect: 100-continue\n\nab",
        OK,
    ),
    (
        "a body of GET is passed over",
        "GET / HTTP/1.1\nHost: x\nContent-Length: 2\n\nab\
         HEAD /closing HTTP/1.1\nHost: x\nContent-Length: 2\n\nab",
        "HTTP/1.1 200 OK\n*\n\nokHTTP/1.1 200 OK\n*\n\n\n(closed)",
    ),
    (
        "extensions of chunks are ignored",
        "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n\
         2;a;b=c;d=\"e\\\"f;g\"\nab\n0;h\n\nGET / HTTP/1.0\n\n",
        OK_TWICE,
    ),
    (
        "bad white space in a chunk extension",
        "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n\
         2 ; a = b\nab\n0\n\nGET / HTTP/1.0\n\n",
        OK_TWICE,
    ),
    (
        "nothing behind close is answered",
        "GET / HTTP/1.1\nHost: x\nConnection: close\n\nGET / HTTP/1.1\nHost: x\n\n",
        OK,
    ),
    (
        "nothing is answered behind our own close",
        "GET /closing HTTP/1.1\nHost: x\n\nGET / HTTP/1.1\nHost: x\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: close\n\nclosing\n(closed)",
    ),
    (
        "close in any line and case",
        "GET / HTTP/1.1\nHost: x\nConnection: a,, CLOSE\nConnection: keep-alive\n\n",
        OK,
    ),
];

#[test]
fn requests_are_answered_by_the_rfc() {
    check(&server(), ANSWERED);
}

/// A gateway in front of an origin.
fn gateway(port: u16, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            upstream u {{ server 127.0.0.1:{port} max_fails=0; keepalive 4; }}
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

fn asked(server: &Server, request: &str) -> Response {
    let mut peer = server.connect();
    if request.starts_with("HEAD ") {
        peer.round_without_body(request.replace('\n', "\r\n"))
    } else {
        peer.round(request.replace('\n', "\r\n"))
    }
}

const GET: &str = "GET / HTTP/1.1\nHost: x\nConnection: close\n\n";
const GONE: &str = "HTTP/1.1 502 Bad Gateway\n*\n(closed)";
const PLAIN: &str = "HTTP/1.1 200 OK\n*\n\nok\n(closed)";

/// An upstream server's answer, and the client's response. Line feeds are sent as CRLF, unless
/// there is a CR already.
const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "a lone CR in a value",
        "HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 2\r\n\r\nok",
        GONE,
    ),
    (
        "a NUL in a value",
        "HTTP/1.1 200 OK\nA: b\0c\nContent-Length: 2\n\nok",
        GONE,
    ),
    (
        "white space before the first field",
        "HTTP/1.1 200 OK\n A: b\nContent-Length: 2\n\nok",
        GONE,
    ),
    (
        "a folded value",
        "HTTP/1.1 200 OK\nA: b\n c\nContent-Length: 2\n\nok",
        GONE,
    ),
    (
        "a space before the colon",
        "HTTP/1.1 200 OK\nContent-Length: 2\nA : b\n\nok",
        "HTTP/1.1 200 OK\n*\nA: b\n\nok\n(closed)",
    ),
    (
        "a status without a reason",
        "HTTP/1.1 299\nContent-Length: 2\n\nok",
        "HTTP/1.1 299 \n*\n\nok\n(closed)",
    ),
    (
        "an unknown status",
        "HTTP/1.1 299 Odd\nContent-Length: 2\n\nok",
        "HTTP/1.1 299 Odd\n*\n\nok\n(closed)",
    ),
    (
        "interim responses of any kind",
        "HTTP/1.1 100 Continue\n\nHTTP/1.1 102 Processing\nA: b\n\nHTTP/1.1 199 Odd\n\n\
         HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        PLAIN,
    ),
    (
        "lengths that differ",
        "HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 3\n\nok",
        GONE,
    ),
    (
        "a length beyond 64 bits",
        "HTTP/1.1 200 OK\nContent-Length: 99999999999999999999999\n\nok",
        GONE,
    ),
    (
        "a chunk size beyond 64 bits",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n10000000000000002\nok\n0\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: close\n\n\n(closed)",
    ),
    (
        "extensions of chunks are ignored",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2;a=\"b\"\nok\n0\n\n",
        "HTTP/1.1 200 OK\n*\nConnection: close\n\n2\nok\n0\n\n\n(closed)",
    ),
];

#[test]
fn responses_are_read_by_the_rfc() {
    let origin = Counting::start("");
    let server = gateway(origin.port(), "");
    for (name, answer, expected) in ANSWERS {
        origin.answer_with(&if answer.contains('\r') {
            (*answer).to_owned()
        } else {
            answer.replace('\n', "\r\n")
        });
        check(&server, &[(name, GET, expected)]);
    }
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn versions_are_our_own() {
    for (version, directives, expected) in [
        ("1.0", "", "1.1"),
        ("1.1", "", "1.1"),
        ("1.1", "proxy_http_version 1.0;", "1.0"),
    ] {
        let origin = Origin::start(vec![vec![
            Step::ReadHead,
            Step::send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ]]);
        let server = gateway(origin.port(), directives);
        let request = format!("GET / HTTP/{version}\nHost: x\nConnection: close\n\n");
        check(&server, &[(version, &request, PLAIN)]);
        let came = String::from_utf8(origin.received()[0].clone()).unwrap();
        let line = format!("GET / HTTP/{expected}\r\n");
        assert!(came.starts_with(&line), "{version} {directives} {came}");
    }
}

#[test]
fn request_lines_of_8000_bytes_are_taken() {
    let origin = Counting::start(ANSWER);
    let server = gateway(origin.port(), "");
    let line = format!("GET /{} HTTP/1.1", "a".repeat(8000));
    let request = format!("{line}\nHost: x\n\n");
    assert_eq!(asked(&server, &request).text(), "ok");
    assert!(origin.heads()[0].starts_with(&format!("{line}\r\n")));
}

#[test]
fn the_absolute_form_goes_upstream_as_a_path() {
    let origin = Counting::start(ANSWER);
    let server = gateway(origin.port(), "proxy_set_header Host $host;");
    let request = "GET http://other.org/a?b HTTP/1.1\nHost: x\n\n";
    assert_eq!(asked(&server, request).text(), "ok");
    let head = &origin.heads()[0];
    let expected = "GET /a?b HTTP/1.1\r\nHost: other.org\r\n";
    assert!(head.starts_with(expected), "{head}");
}

#[test]
fn an_empty_host_goes_upstream_as_that_of_the_server() {
    let origin = Counting::start(ANSWER);
    for (directives, has_host) in [
        ("proxy_set_header Host '';", true),
        ("proxy_set_header Host $arg_none;", true),
        ("proxy_set_header Host ' ';", true),
        ("proxy_http_version 1.0; proxy_set_header Host '';", false),
    ] {
        let server = gateway(origin.port(), directives);
        assert_eq!(asked(&server, "GET / HTTP/1.1\nHost: x\n\n").text(), "ok");
        let head = origin.heads().pop().unwrap();
        let host = "\r\nHost: u\r\n";
        assert_eq!(head.contains(host), has_host, "{directives} {head}");
        assert_eq!(head.contains("Host:"), has_host, "{directives} {head}");
    }
}

#[test]
fn an_empty_path_goes_upstream_as_a_slash() {
    let origin = Counting::start(ANSWER);
    let server = gateway(origin.port(), "");
    for (target, expected) in [
        ("http://x", "/"),
        ("http://x?a=b", "/?a=b"),
        ("http://x/", "/"),
        ("/%7Ea//b/./c?d=%41", "/%7Ea//b/./c?d=%41"),
    ] {
        let request = format!("GET {target} HTTP/1.1\nHost: x\n\n");
        assert_eq!(asked(&server, &request).text(), "ok", "{target}");
        let head = origin.heads().pop().unwrap();
        let line = format!("GET {expected} HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{target} {head}");
    }
}

#[test]
fn chunks_are_not_sent_to_http_1_0() {
    let origin = Counting::start(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    );
    let server = gateway(origin.port(), "");
    let expected = "HTTP/1.1 200 OK\nServer: *\nDate: *\nConnection: close\n\nok\n(closed)";
    check(&server, &[("1.0", "GET / HTTP/1.0\n\n", expected)]);
}

/// A server's first answer, after which its connection stays open; returns whether the second
/// request comes on another connection.
fn asks_on_another_connection(answer: &str, directives: &str) -> bool {
    let first = vec![
        Step::ReadHead,
        Step::send(answer),
        Step::ReadHead,
        Step::send(ANSWER),
    ];
    let second = vec![Step::ReadHead, Step::send(ANSWER)];
    let origin = Origin::start(vec![first, second]);
    let server = gateway(origin.port(), directives);
    for _ in 0..2 {
        assert_eq!(asked(&server, GET).text(), "ok", "{answer}");
    }
    origin.received().len() == 2
}

#[test]
fn after_a_servers_close_another_connection_is_used() {
    assert!(!asks_on_another_connection(ANSWER, ""));
    let closing = ANSWER.replace("\r\n\r\n", "\r\nConnection: a, Close\r\n\r\n");
    assert!(asks_on_another_connection(&closing, ""));
}

#[test]
fn a_request_with_close_closes_the_upstream_connection() {
    let directives = "proxy_set_header Connection close;";
    assert!(asks_on_another_connection(ANSWER, directives));
}

#[test]
fn an_http_1_0_answer_in_chunks_ends_its_connection() {
    let answer = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n\
                  2\r\nok\r\n0\r\n\r\n";
    assert!(asks_on_another_connection(answer, ""));
}

#[test]
fn input_on_an_idle_connection_closes_it() {
    let origin = Origin::start(vec![
        vec![
            Step::ReadHead,
            Step::send(ANSWER),
            Step::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
            Step::ReadToEnd,
        ],
        vec![Step::ReadHead, Step::send(ANSWER)],
    ]);
    let server = gateway(origin.port(), "");
    assert_eq!(asked(&server, GET).text(), "ok");
    origin.wait_for_ended(1); // a request sent before the server noticed would get those bytes
    assert_eq!(asked(&server, GET).text(), "ok");
    assert_eq!(origin.received().len(), 2);
}

#[test]
fn a_response_that_was_not_read_leaves_its_connection() {
    // HEAD gets a body, against the rules: it must not be read as the next response.
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let origin = Origin::start(vec![
        vec![Step::ReadHead, Step::send(answer), Step::ReadToEnd],
        vec![Step::ReadHead, Step::send(ANSWER)],
    ]);
    let server = gateway(origin.port(), "");
    assert_eq!(asked(&server, "HEAD / HTTP/1.1\nHost: x\n\n").status, 200);
    assert_eq!(asked(&server, GET).text(), "ok");
}

#[test]
fn the_method_decides_whether_a_response_has_a_body() {
    let origin = Counting::start("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    let server = gateway(origin.port(), "");
    for _ in 0..2 {
        let got = asked(&server, "HEAD / HTTP/1.1\nHost: x\n\n");
        assert_eq!(got.header("Content-Length"), Some("500"));
    }
    origin.answer_with("HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n");
    let request = "GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\n\r\n";
    assert_eq!(server.connect().round_without_body(request).status, 304);
    origin.answer_with(ANSWER);
    assert_eq!(asked(&server, GET).text(), "ok");
}

#[test]
fn trailers_of_requests_do_not_become_fields() {
    for directives in ["", "proxy_request_buffering off;"] {
        let origin = Origin::start(vec![vec![
            Step::ReadHead,
            Step::send(ANSWER.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")),
        ]]);
        let server = gateway(origin.port(), directives);
        let request = "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n\
                       2\nab\n0\nX-Trailer: c\nAuthorization: d\n\n";
        assert_eq!(asked(&server, request).status, 200);
        let came = String::from_utf8(origin.received()[0].clone()).unwrap();
        let head = came.split("\r\n\r\n").next().unwrap();
        assert!(!head.contains("X-Trailer") && !head.contains("Authorization"));
    }
}
