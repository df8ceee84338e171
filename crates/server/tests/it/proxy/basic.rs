//! Tests of `proxy_pass` from the client's request to the client's response.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use turnpike_testkit::{Origin, Server, Step, check};

/// A server in front of an origin; `locations` are in its server block.
fn server(origin: &Origin, locations: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            log_format up '$status|$upstream_addr|$upstream_status|$upstream_response_length';
            access_log %FOLDER%/access.log up;
            proxy_cache_path %FOLDER%/cache keys_zone=Z:1m;
            server {{
                listen 127.0.0.1:%PORT%;
                server_tokens off;
                {}
            }}
        }}",
        locations.replace("%ORIGIN%", &format!("127.0.0.1:{}", origin.port()))
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

fn answers(response: &str) -> Origin {
    Origin::start(vec![vec![Step::ReadHead, Step::send(response)]])
}

/// The bytes that the origin received on the connection with that number, with plain line feeds.
fn received(origin: &Origin, connection: usize) -> String {
    let bytes = origin.received()[connection].clone();
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_response_of_known_length_is_passed_on() {
    let origin = answers(
        "HTTP/1.1 200 Fine\r\nServer: origin\r\nX-A: b\r\nContent-Type: text/x\r\n\
         Content-Length: 5\r\n\r\nhello",
    );
    let server = server(&origin, "location / { proxy_pass http://%ORIGIN%; }");
    check(
        &server,
        &[(
            "known length",
            "GET /a%20b?c=d HTTP/1.1\nHost: x\nX-Own: 1\nConnection: close\n\n",
            "HTTP/1.1 200 Fine\nServer: nginx\nDate: *\nContent-Type: text/x\n\
             Content-Length: 5\nConnection: close\nX-A: b\n\nhello\n(closed)",
        )],
    );
    let expected = format!(
        "GET /a%20b?c=d HTTP/1.1\nHost: 127.0.0.1:{}\nX-Own: 1\n\n",
        origin.port()
    );
    assert_eq!(received(&origin, 0), expected);
    let line = format!("200|127.0.0.1:{}|200|5", origin.port());
    server.wait_for_log("access.log", &line);
}

const FRAMINGS: &[(&str, &str, &str)] = &[
    (
        "chunks stay chunks",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\n*\nTransfer-Encoding: chunked\n*\n\n5\nabcde\n0\n\n",
    ),
    (
        "what ends with the connection becomes chunks",
        "HTTP/1.0 200 OK\r\n\r\nabcde",
        "HTTP/1.1 200 OK\n*\nTransfer-Encoding: chunked\n*\n\n*\nabcde\n0\n\n",
    ),
    (
        "no content",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 204 No Content\n*\n\n",
    ),
    (
        "no content with metadata",
        "HTTP/1.1 204 No Content\r\nContent-Type: text/x\r\nContent-Length: 0\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: \"a\"\r\n\r\n",
        "HTTP/1.1 204 No Content\nServer: nginx\nDate: *\nContent-Type: text/x\n\
         Connection: keep-alive\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nETag: \"a\"\n\n",
    ),
    (
        "an empty body",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\n*\nContent-Length: 0\n*\n\n",
    ),
    (
        "early hints are passed over",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\n*\nContent-Length: 1\n*\n\na",
    ),
];

#[test]
fn bodies_have_their_correct_end() {
    for (name, response, expected) in FRAMINGS {
        let origin = answers(response);
        let server = server(&origin, "location / { proxy_pass http://%ORIGIN%; }");
        check(&server, &[(name, "GET / HTTP/1.1\nHost: x\n\n", expected)]);
    }
}

/// A megabyte of zeros.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A response with these transfer codings, in pieces of a few bytes if the last is `chunked`.
fn coded(codings: &str, body: &[u8]) -> Vec<u8> {
    let fields = "Content-Type: text/x\r\nCache-Control: max-age=600\r\nConnection: close\r\n";
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: {codings}\r\n\r\n");
    let mut bytes = head.into_bytes();
    if !codings.to_ascii_lowercase().ends_with("chunked") {
        bytes.extend_from_slice(body);
        return bytes;
    }
    for piece in body.chunks(7) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn transfer_codings_are_decoded() {
    let members = [gzip(b"first"), gzip(b"second")].concat();
    let cases: &[(&str, Vec<u8>, &[u8])] = &[
        ("gzip, chunked", gzip(b"text"), b"text"),
        ("X-GZIP , Chunked", gzip(b"text"), b"text"),
        ("gzip\r\nTransfer-Encoding: chunked", gzip(b"text"), b"text"),
        ("gzip, chunked", members, b"firstsecond"),
        ("gzip, chunked", gzip(&ZEROS), &ZEROS),
        ("gzip, chunked", Vec::new(), b""),
        ("deflate, chunked", zlib(b"text"), b"text"),
        ("deflate, chunked", deflate(b"text"), b"text"),
        ("gzip", gzip(b"text"), b"text"),
    ];
    let caches = [
        "",
        "proxy_cache Z; add_header X-Cache $upstream_cache_status;",
    ];
    for (codings, body, expected) in cases {
        for cache in caches {
            let origin =
                Origin::start(vec![vec![Step::ReadHead, Step::send(coded(codings, body))]]);
            let location = format!("location / {{ proxy_pass http://%ORIGIN%; {cache} }}");
            let server = server(&origin, &location);
            for round in 0..2 {
                let response = server.get("/");
                assert_eq!(response.status, 200, "{codings}");
                assert!(response.body == *expected, "{codings} {}", response.text());
                let framing = response.header("Transfer-Encoding");
                assert!(framing.is_none_or(|text| text == "chunked"), "{codings}");
                let hit = response.header("X-Cache") == Some("HIT");
                assert_eq!(hit, round == 1 && !cache.is_empty(), "{codings}");
            }
        }
    }
}

#[test]
fn undecodable_transfer_codings_are_errors() {
    let text = gzip(b"text");
    let cut = &text[..text.len() - 1];
    let foreign = [zlib(b"text"), b"x".to_vec()].concat();
    // If the head was sent before the error, the body has no end.
    let cases: &[(&str, &[u8], &str)] = &[
        ("br, chunked", &text, "HTTP/1.1 502 Bad Gateway\n*"),
        ("gzip, gzip, chunked", &text, "HTTP/1.1 502 Bad Gateway\n*"),
        ("chunked, gzip", &text, "HTTP/1.1 502 Bad Gateway\n*"),
        (
            "gzip, chunked",
            b"no gzip",
            "HTTP/1.1 200 OK\n*\n\n(closed)",
        ),
        (
            "gzip, chunked",
            cut,
            "HTTP/1.1 200 OK\n*\n\n4\ntext\n\n(closed)",
        ),
        ("gzip", cut, "HTTP/1.1 200 OK\n*\n\n4\ntext\n\n(closed)"),
        (
            "deflate, chunked",
            &foreign,
            "HTTP/1.1 200 OK\n*\n\n4\ntext\n\n(closed)",
        ),
    ];
    for (codings, body, expected) in cases {
        let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(coded(codings, body))]]);
        let server = server(&origin, "location / { proxy_pass http://%ORIGIN%; }");
        check(
            &server,
            &[(codings, "GET / HTTP/1.1\nHost: x\n\n", expected)],
        );
        server.wait_for_log("error.log", "Transfer-Encoding");
    }
}

/// Location, request path, and the origin's path.
const PATHS: &[(&str, &str, &str)] = &[
    (
        "location / { proxy_pass http://%ORIGIN%; }",
        "/a%2fb/?x",
        "/a%2fb/?x",
    ),
    (
        "location /a/ { proxy_pass http://%ORIGIN%/b/; }",
        "/a/c%20d?e",
        "/b/c%20d?e",
    ),
    (
        "location /a { proxy_pass http://%ORIGIN%/b; }",
        "/abc",
        "/bbc",
    ),
    (
        "location = /a { proxy_pass http://%ORIGIN%/b; }",
        "/a?c",
        "/b?c",
    ),
    (
        "location / { rewrite ^/x(.*) /y$1 break; proxy_pass http://%ORIGIN%; }",
        "/x/z",
        "/y/z",
    ),
    (
        "location / { rewrite ^/x(.*) /y$1 break; proxy_pass http://%ORIGIN%/p; }",
        "/x/z",
        "/y/z",
    ),
    (
        "location ~ ^/(.) { proxy_pass http://%ORIGIN%; }",
        "/q/%7e",
        "/q/%7e",
    ),
    (
        "location / { proxy_pass http://%ORIGIN%/u$uri; }",
        "/q?a",
        "/u/q",
    ),
    (
        "location / { set $o %ORIGIN%; proxy_pass http://$o; }",
        "/q?a",
        "/q?a",
    ),
    (
        "location / { proxy_pass http://%ORIGIN%?x=; }",
        "/q",
        "/?x=q",
    ),
    (
        "location / { if ($arg_a) { set $b 1; } proxy_pass http://%ORIGIN%; }",
        "/q?a=1",
        "/q?a=1",
    ),
    (
        "location / { error_page 404 = @up; return 404; } \
         location @up { proxy_pass http://%ORIGIN%; }",
        "/q?a",
        "/q?a",
    ),
];

#[test]
fn paths_are_replaced_as_in_nginx() {
    for (location, path, expected) in PATHS {
        let origin = answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let server = server(&origin, location);
        let response = server.get(path);
        assert_eq!(response.status, 200, "{location} {path}");
        let line = format!("GET {expected} HTTP/1.1");
        let came = received(&origin, 0);
        assert_eq!(came.lines().next().unwrap(), line, "{location} {path}");
    }
}

#[test]
fn bodies_of_requests_are_passed_on() {
    let read = |bytes: usize| {
        vec![
            Step::ReadHead,
            Step::ReadBytes(bytes),
            // The response announces the close: a POST on a connection that was just closed may not
            // be repeated.
            Step::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
        ]
    };
    let large = vec![b'x'; 100_000];
    let origin = Origin::start(vec![read(5), read(5), read(large.len())]);
    let server = server(
        &origin,
        "location / { proxy_pass http://%ORIGIN%; keepalive_timeout 0; }",
    );
    check(
        &server,
        &[
            (
                "a length",
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                "HTTP/1.1 200 OK\n*\n\nok\n(closed)",
            ),
            (
                "chunks get their length",
                "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n2\nhe\n3\nllo\n0\n\n",
                "HTTP/1.1 200 OK\n*\n\nok\n(closed)",
            ),
        ],
    );
    for connection in [0, 1] {
        let came = received(&origin, connection);
        assert!(came.contains("Content-Length: 5\n"), "{came}");
        assert!(came.ends_with("\n\nhello"), "{came}");
        assert!(!came.contains("chunked"), "{came}");
    }
    let mut peer = server.connect();
    peer.send(format!(
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        large.len()
    ));
    peer.send(&large);
    assert_eq!(peer.response().status, 200);
    assert!(origin.received()[2].ends_with(&large));
    assert!(
        server
            .log("error.log")
            .contains("a client request body is buffered")
    );
}

#[test]
fn connections_to_servers_are_kept() {
    let one = [
        Step::ReadHead,
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"),
    ];
    let script = std::iter::repeat_n(one, 3).flatten().collect();
    let origin = Origin::start(vec![script]);
    let server = server(&origin, "location / { proxy_pass http://%ORIGIN%; }");
    for _ in 0..3 {
        assert_eq!(server.get("/").text(), "a");
    }
    assert_eq!(origin.received().len(), 1);
}
