//! Character sets on the wire: what Content-Type says, and what becomes of the text.

use turnpike_testkit::{Origin, Server, Step, check};

const CONFIGURATION: &str = "
    events { }
    http {
        types { text/html html; text/own own; image/png png; }
        charset_map B A { 58 59; }
        charset_map koi8-r utf-8 { E1 D090; }
        server {
            listen 127.0.0.1:%PORT%;
            server_tokens off;
            root %FOLDER%/html;
            location /plain/ { alias %FOLDER%/html/; charset utf-8; }
            location /own/ { alias %FOLDER%/html/; charset utf-8; charset_types text/own; }
            location /any/ { alias %FOLDER%/html/; charset utf-8; charset_types *; }
            location /variable/ { alias %FOLDER%/html/; charset $arg_c; source_charset $arg_s; }
            location /bytes/ { alias %FOLDER%/html/; charset A; source_charset B; }
            location /back/ { alias %FOLDER%/html/; charset koi8-r; source_charset utf-8; }
            location /forth/ { alias %FOLDER%/html/; charset utf-8; source_charset KOI8-R; }
            location /moved { charset utf-8; return 302 /; }
            location /page { charset utf-8; return 404; }
            %LOCATIONS%
        }
    }";

fn server(locations: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("%LOCATIONS%", locations))
        .file("html/a.html", "aXbX")
        .file("html/a.own", "own")
        .file("html/a.png", "png")
        .file("html/koi.html", b"a\xe1\xe2")
        .file("html/utf.html", "a\u{410}\u{411}")
        .file("html/large.html", "0123456X".repeat(20_000))
        .start()
}

/// A target, the Content-Type of its response, and its body.
const CASES: &[(&str, &str, &[u8])] = &[
    ("/plain/a.html", "text/html; charset=utf-8", b"aXbX"),
    ("/plain/a.own", "text/own", b"own"),
    ("/own/a.own", "text/own; charset=utf-8", b"own"),
    ("/own/a.html", "text/html; charset=utf-8", b"aXbX"),
    ("/any/a.png", "image/png; charset=utf-8", b"png"),
    ("/variable/a.html?c=z", "text/html; charset=z", b"aXbX"),
    ("/variable/a.html", "text/html", b"aXbX"),
    ("/variable/a.html?c=A&s=b", "text/html; charset=A", b"aYbY"),
    ("/variable/a.html?c=C&s=b", "text/html", b"aXbX"),
    ("/bytes/a.html", "text/html; charset=A", b"aYbY"),
    (
        "/back/utf.html",
        "text/html; charset=koi8-r",
        b"a\xe1&#1041;",
    ),
    ("/forth/koi.html", "text/html; charset=utf-8", b"a\xd0\x90?"),
];

#[test]
fn types_name_the_character_set_of_texts() {
    let server = server("");
    for (target, kind, body) in CASES {
        let response = server.get(target);
        assert_eq!(response.header("Content-Type"), Some(*kind), "{target}");
        assert_eq!(response.body, *body, "{target}");
        let length = body.len().to_string();
        assert_eq!(
            response.header("Content-Length"),
            Some(&*length),
            "{target}"
        );
    }
    let moved = server.get("/moved");
    assert_eq!(moved.header("Content-Type"), Some("text/html"));
    let page = server.get("/page");
    assert_eq!(
        page.header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    let large = server.get("/bytes/large.html");
    assert_eq!(large.header("Content-Length"), Some("160000"));
    assert!(large.text() == "0123456Y".repeat(20_000));
    assert!(server.get("/forth/large.html").text() == "0123456X".repeat(20_000));
}

#[test]
fn ranges_are_of_the_converted_text() {
    check(
        &server(""),
        &[
            (
                "one",
                "GET /bytes/a.html HTTP/1.1\nHost: x\nRange: bytes=1-2\n\n",
                "HTTP/1.1 206 Partial Content\n*\nContent-Length: 2\n*\n\nYb",
            ),
            (
                "several",
                "GET /bytes/a.html HTTP/1.1\nHost: x\nRange: bytes=1-1,3-3\nConnection: close\n\n",
                "HTTP/1.1 206 Partial Content\n*\nContent-Type: text/html; charset=A\n*\nY\n*\nY\n\
                 *\n(closed)",
            ),
            (
                "HEAD",
                "HEAD /bytes/a.html HTTP/1.1\nHost: x\n\n",
                "HTTP/1.1 200 OK\n*\nContent-Type: text/html; charset=A\nContent-Length: 4\n*\n\n",
            ),
        ],
    );
}

/// Directives, fields of the server's response, and the client's response.
const PROXIED: &[(&str, &str, &str, &str)] = &[
    (
        "",
        "Content-Type: text/html; charset=B",
        "text/html; charset=B",
        "X",
    ),
    (
        "charset A;",
        "Content-Type: text/html; charset=B",
        "text/html; charset=B",
        "X",
    ),
    (
        "charset A;",
        "Content-Type: text/html;",
        "text/html; charset=A",
        "X",
    ),
    (
        "charset A; override_charset on;",
        "Content-Type: text/html; x=y; charset=\"b\"",
        "text/html; x=y; charset=A",
        "Y",
    ),
    (
        "",
        "Content-Type: text/html; charset=B\r\nX-Accel-Charset: A",
        "text/html; charset=A",
        "Y",
    ),
    (
        "source_charset B;",
        "Content-Type: text/html\r\nX-Accel-Charset: A",
        "text/html; charset=A",
        "Y",
    ),
    (
        "",
        "Content-Type: text/html\r\nX-Accel-Charset: A",
        "text/html; charset=A",
        "X",
    ),
    (
        "charset A; source_charset B;",
        "Content-Type: text/html\r\nContent-Encoding: gzip",
        "text/html",
        "X",
    ),
    (
        "charset A; source_charset B; proxy_ignore_headers X-Accel-Charset;",
        "Content-Type: text/html\r\nX-Accel-Charset: C",
        "text/html; charset=A",
        "Y",
    ),
];

#[test]
fn responses_of_servers_are_converted_if_marked_or_configured() {
    for (directives, fields, kind, text) in PROXIED {
        for framing in [
            "Content-Length: 1\r\n\r\nX",
            "Transfer-Encoding: chunked\r\n\r\n1\r\nX\r\n0\r\n\r\n",
        ] {
            let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n{framing}");
            let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(response)]]);
            let port = origin.port();
            let server = server(&format!(
                "location /p {{ proxy_pass http://127.0.0.1:{port}; {directives} }}"
            ));
            let got = server.get("/p");
            assert_eq!(
                got.header("Content-Type"),
                Some(*kind),
                "{directives} {fields}"
            );
            assert_eq!(got.text(), *text, "{directives} {fields}");
        }
    }
}

#[test]
fn a_character_cut_in_two_is_converted_as_one() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        Step::send(b"2\r\na\xd0\r\n"),
        Step::send(b"2\r\n\x90b\r\n1\r\n\xd0\r\n0\r\n\r\n"),
    ]]);
    let port = origin.port();
    let server = server(&format!(
        "location /p {{
            proxy_pass http://127.0.0.1:{port};
            proxy_buffering off;
            charset koi8-r;
            source_charset utf-8;
        }}"
    ));
    assert_eq!(server.get("/p").body, b"a\xe1b?");
}

#[test]
fn wrong_maps_are_refused_with_nginxs_messages() {
    for (http, message) in [
        (
            "charset A; source_charset B;",
            "no \"charset_map\" between the charsets \"B\" and \"A\"",
        ),
        (
            "charset_map utf-8 A { }",
            "\"charset_map\" with \"utf-8\" charset should be given in the second column",
        ),
        (
            "charset_map A a { }",
            "\"charset_map\" between the same charsets \"A\" and \"a\"",
        ),
        (
            "charset_map A B { } charset_map B A { }",
            "duplicate \"charset_map\" between \"B\" and \"A\"",
        ),
        ("charset_map A B { 1 2 3; }", "invalid parameters number"),
        ("charset_map A B { 100 2; }", "invalid value \"100\""),
        ("charset_map A utf-8 { 80 C0; }", "invalid value \"C0\""),
    ] {
        let configuration =
            format!("events {{ }} http {{ {http} server {{ listen 127.0.0.1:%PORT%; }} }}");
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .try_start();
        let error = started.err().unwrap().to_string();
        assert!(error.contains(message), "{http}: {error}");
    }
}
