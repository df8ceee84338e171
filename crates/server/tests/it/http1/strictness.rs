//! Tests of `http_strictness`: messages that RFC 9112 refuses are refused by default; with nginx's
//! rules, exactly those that the installed nginx accepts are accepted.

use turnpike_testkit::{Origin, Server, Step};

const OURS: &str = env!("CARGO_BIN_EXE_turnpike");

/// Requests without their `Connection: close`, and the status by the RFC.
const REQUESTS: &[(&str, u16)] = &[
    ("GET / HTTP/1.1\r\nHost: h\r\n", 200),
    ("GET / HTTP/1.1\nHost: h\n", 200),
    ("GET / HTTP/1.1\r\nHost:\th\t\r\n", 200),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo bar: x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo : x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo\t: x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo/bar: x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo(: x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\n\u{e9}: x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo.bar: x\r\n", 200),
    ("GET / HTTP/1.1\r\nHost: h\r\nfoo_bar: x\r\n", 200),
    ("GET / HTTP/1.1\r\nHost: h\r\n: x\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na: b\r\n c\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na: b\u{1}\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na: b\u{7f}\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na: b\0\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na: b\rc\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na: b\r\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\na:\tb\u{e9}\tc\t\r\n", 200),
    ("GET / HTTP/1.01\r\nHost: h\r\n", 400),
    ("GET  /  HTTP/1.1\r\nHost: h\r\n", 200),
    ("get / HTTP/1.1\r\nHost: h\r\n", 501),
    ("G1 / HTTP/1.1\r\nHost: h\r\n", 501),
    ("G\" / HTTP/1.1\r\nHost: h\r\n", 400),
    ("BREW /file HTTP/1.1\r\nHost: h\r\n", 501),
    ("PUT /file HTTP/1.1\r\nHost: h\r\n", 405),
    ("BREW / HTTP/1.1\r\nHost: h\r\n", 200),
    (
        "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMN / HTTP/1.1\r\nHost: h\r\n",
        501,
    ),
    ("TRACE / HTTP/1.1\r\nHost: h\r\n", 405),
    ("OPTIONS * HTTP/1.1\r\nHost: h\r\n", 200),
    ("GET * HTTP/1.1\r\nHost: h\r\n", 400),
    ("OPTIONS / HTTP/1.1\r\nHost: h\r\n", 200),
    ("GET http://h?x HTTP/1.1\r\nHost: h\r\n", 200),
    ("GET http://h HTTP/1.1\r\nHost: h\r\n", 200),
];

/// Values of `Transfer-Encoding` and the status by the RFC.
const CODINGS: &[(&str, u16)] = &[
    ("chunked", 200),
    ("CHUNKED", 200),
    ("\tchunked\t", 200),
    ("", 400),
    ("gzip", 400),
    ("identity", 400),
    ("gzip, chunked", 501),
    ("chunked, gzip", 400),
    ("chunked, chunked", 400),
    ("chunked,", 400),
    ("chunked;a=b", 400),
    ("chunked\u{b}", 400),
    ("\u{c}chunked", 400),
    ("chunked\r\nTransfer-Encoding: chunked", 400),
    ("gzip\r\nTransfer-Encoding: chunked", 501),
    ("gzip\r\nTransfer-Encoding: br, chunked", 501),
    ("chunked\r\nTransfer-Encoding: gzip", 400),
    ("\r\nTransfer-Encoding: chunked", 400),
    ("chunked\r\nContent-Length: 3", 400),
];

/// Chunked bodies and the status by the RFC.
const BODIES: &[(&str, u16)] = &[
    ("5\r\nhello\r\n0\r\n\r\n", 200),
    ("5;a=b;c=\"d\"\r\nhello\r\n0\r\n\r\n", 200),
    ("5 ;a\r\nhello\r\n0\r\n\r\n", 200),
    ("5 \r\nhello\r\n0\r\n\r\n", 400),
    ("5 x\r\nhello\r\n0\r\n\r\n", 400),
    ("5;\r\nhello\r\n0\r\n\r\n", 400),
    ("5;a=\r\nhello\r\n0\r\n\r\n", 400),
    ("5;=a\r\nhello\r\n0\r\n\r\n", 400),
    ("5;a b\r\nhello\r\n0\r\n\r\n", 400),
    ("5\nhello\r\n0\r\n\r\n", 400),
    ("5\r\nhello6\r\n0\r\n\r\n", 400),
    ("x\r\nhello\r\n0\r\n\r\n", 400),
    ("5\r\nhello\r\n0\r\na: b\r\n\r\n", 200),
    ("5\r\nhello\r\n0\r\na\r\n\r\n", 400),
    ("5\r\nhello\r\n0\r\na: b\u{1}\r\n\r\n", 400),
    ("5\r\nhello\r\n0\r\n\n", 400),
];

/// Bodies that the installed nginx accepts, but versions since 1.27 refuse: lone line feeds.
const NEWER: &[&str] = &["5\nhello\r\n0\r\n\r\n", "0\r\n\n"];

fn requests() -> Vec<(String, u16)> {
    let mut all = Vec::new();
    for (head, status) in REQUESTS {
        all.push((format!("{head}Connection: close\r\n\r\n"), *status));
    }
    for (value, status) in CODINGS {
        let text = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
             Transfer-Encoding: {value}\r\n\r\n0\r\n\r\n"
        );
        all.push((text, *status));
    }
    for target in ["/", "/passed"] {
        for (body, status) in BODIES {
            let text = format!(
                "POST {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
                 Transfer-Encoding: chunked\r\n\r\n{body}"
            );
            all.push((text, *status));
        }
    }
    all
}

fn configuration(http: &str, locations: &str) -> String {
    format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            {http}
            server_tokens off;
            access_log off;
            client_body_temp_path %FOLDER%/body;
            proxy_temp_path %FOLDER%/proxy;
            proxy_http_version 1.1;
            proxy_set_header Host o;
            proxy_set_header Connection close;
            server {{
                listen 127.0.0.1:%PORT%;
                root %FOLDER%/html;
                location / {{ return 200 \"$request_method $uri $args\"; }}
                location /file {{ }}
                {locations}
            }}
        }}"
    )
}

fn start(program: &str, http: &str, locations: &str) -> Server {
    Server::builder(program)
        .configuration(&configuration(http, locations))
        .file("html/file", "content")
        .start()
}

fn passing_to(origin: &Origin) -> String {
    format!(
        "location /passed {{ proxy_pass http://127.0.0.1:{}; }}",
        origin.port()
    )
}

fn origin(answer: &str) -> Origin {
    Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]])
}

/// An origin for requests with the body of [`BODIES`], which it must read: an earlier close would
/// reset the connection.
fn origin_of_bodies() -> Origin {
    let steps = vec![
        Step::ReadHead,
        Step::ReadBytes("hello".len()),
        Step::send(OK),
    ];
    Origin::start(vec![steps])
}

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

fn status_of(answer: &[u8]) -> u16 {
    let digits = answer.get(9..12).unwrap_or_default();
    std::str::from_utf8(digits)
        .unwrap()
        .parse()
        .unwrap_or_default()
}

#[test]
fn messages_follow_the_rfc_by_default() {
    let origin = origin_of_bodies();
    let server = start(OURS, "", &passing_to(&origin));
    for (request, status) in requests() {
        let answer = server.exchange(&request);
        let shown = String::from_utf8_lossy(&answer);
        assert_eq!(status_of(&answer), status, "{request:?}: {shown}");
        if status == 400 {
            assert!(shown.contains("\r\nConnection: close\r\n"), "{request:?}");
        }
    }
}

/// The bytes of a response without the parts that change, and without the methods that a 405 names
/// here (RFC 9110 section 15.5.6) and not in nginx.
fn comparable(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer).into_owned();
    let lines = text.split("\r\n");
    let kept: Vec<&str> = lines
        .filter(|line| !line.starts_with("Date: ") && *line != "Allow: GET, HEAD")
        .collect();
    kept.join("\r\n")
}

#[test]
fn nginx_leniency_is_that_of_nginx() {
    let origins = [origin_of_bodies(), origin_of_bodies()];
    let ours = start(OURS, "http_strictness nginx;", &passing_to(&origins[0]));
    let nginx = start("nginx", "", &passing_to(&origins[1]));
    for (request, _) in requests() {
        let mine = comparable(&ours.exchange(&request));
        if NEWER.iter().any(|body| request.ends_with(body)) {
            assert!(mine.starts_with("HTTP/1.1 400 "), "{request:?}");
            continue;
        }
        let theirs = comparable(&nginx.exchange(&request));
        assert_eq!(mine, theirs, "{request:?}");
    }
    // The requests that both have passed on, head for head.
    let [mine, theirs] = origins.map(|origin| {
        let received = origin.received();
        let heads = received.iter().map(|request| {
            let text = String::from_utf8_lossy(request).into_owned();
            text.split("\r\n\r\n").next().unwrap_or_default().to_owned()
        });
        heads.collect::<Vec<_>>()
    });
    assert!(!mine.is_empty());
    assert_eq!(mine, theirs);
}

/// Responses of upstream servers, and whether they are valid by the RFC; each is followed by a
/// close.
const ANSWERS: &[(&str, bool)] = &[
    (OK, true),
    (
        "HTTP/1.1 200\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        true,
    ),
    ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", true),
    ("HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\nok", false),
    (
        "HTTP/1.1 200 OK\r\nX/Y: z\r\nContent-Length: 2\r\n\r\nok",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nX: \u{1}\r\nContent-Length: 2\r\n\r\nok",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 2\r\n\r\nok",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 2\r\n\r\nok",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nX:\ty\t\r\nContent-Length: 2\r\n\r\nok",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 x\r\nok\r\n0\r\n\r\n",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;\r\nok\r\n0\r\n\r\n",
        false,
    ),
];

fn upstreams() -> (Vec<Origin>, String) {
    let origins: Vec<Origin> = ANSWERS.iter().map(|(answer, _)| origin(answer)).collect();
    let locations = origins.iter().enumerate().map(|(number, origin)| {
        let port = origin.port();
        format!("location /{number} {{ proxy_pass http://127.0.0.1:{port}; }}\n")
    });
    let locations = locations.collect();
    (origins, locations)
}

fn ask(server: &Server, number: usize) -> Vec<u8> {
    let request = format!("GET /{number} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    server.exchange(request)
}

#[test]
fn answers_of_upstream_servers_follow_the_rfc_too() {
    let (_origins, locations) = upstreams();
    let server = start(OURS, "", &locations);
    for (number, (answer, good)) in ANSWERS.iter().enumerate() {
        let passed = ask(&server, number);
        let whole = passed.ends_with(b"ok") || passed.ends_with(b"2\r\nok\r\n0\r\n\r\n");
        let found = status_of(&passed) == 200 && whole;
        assert_eq!(found, *good, "{answer:?}");
    }
    let spaced = ANSWERS
        .iter()
        .position(|(answer, _)| answer.contains("X : y"));
    let passed = ask(&server, spaced.unwrap());
    assert!(String::from_utf8_lossy(&passed).contains("\r\nX: y\r\n"));
}

#[test]
fn with_nginx_leniency_nginxs_choice_of_them_is_accepted() {
    let (_origins, locations) = upstreams();
    let ours = start(OURS, "http_strictness nginx;", &locations);
    let nginx = start("nginx", "", &locations);
    for (number, (answer, _)) in ANSWERS.iter().enumerate() {
        let (mine, theirs) = (ask(&ours, number), ask(&nginx, number));
        assert_eq!(status_of(&mine), status_of(&theirs), "{answer:?}");
        let body = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
        };
        assert_eq!(body(&mine), body(&theirs), "{answer:?}");
    }
}

#[test]
fn the_default_server_reads_the_head_and_the_named_one_the_rest() {
    let configuration = |default: &str, named: &str| {
        format!(
            "events {{ }}
            http {{
                server {{ listen 127.0.0.1:%PORT%; http_strictness {default}; return 200 d; }}
                server {{
                    listen 127.0.0.1:%PORT%;
                    server_name n;
                    http_strictness {named};
                    location / {{ return 200 n; }}
                }}
            }}"
        )
    };
    let head = "GET / HTTP/1.1\r\nHost: n\r\nfoo\r\nConnection: close\r\n\r\n";
    let body = "POST / HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\
                Transfer-Encoding: chunked\r\n\r\n2 x\r\nok\r\n0\r\n\r\n";
    let table = [
        ("rfc", "rfc", 400, 400),
        ("rfc", "nginx", 400, 200),
        ("nginx", "rfc", 400, 400),
        ("nginx", "nginx", 200, 200),
    ];
    for (default, named, of_head, of_body) in table {
        let server = Server::builder(OURS)
            .configuration(&configuration(default, named))
            .start();
        let statuses = (
            status_of(&server.exchange(head)),
            status_of(&server.exchange(body)),
        );
        assert_eq!(statuses, (of_head, of_body), "{default} {named}");
    }
}

#[test]
fn options_for_the_whole_server_are_answered_by_it() {
    let origin = origin(OK);
    let locations = format!(
        "location ~ . {{ proxy_pass http://127.0.0.1:{}; }}",
        origin.port()
    );
    let ask = "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let server = start(OURS, "", &locations);
    let answer = server.exchange(ask);
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("\r\nContent-Length: 0\r\n"), "{text}");
    assert!(text.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), "{text}");
    assert!(origin.received().is_empty());
    let either = start(OURS, "satisfy any; allow all;", "try_files $uri =404;");
    assert_eq!(status_of(&either.exchange(ask)), 200);
    let denied = start(OURS, "deny all;", "");
    assert_eq!(status_of(&denied.exchange(ask)), 403);
}

#[test]
fn an_empty_path_goes_upstream_as_a_slash() {
    let origin = origin(OK);
    let locations = format!(
        "location = / {{ proxy_pass http://127.0.0.1:{}; }}",
        origin.port()
    );
    let configuration = configuration("", "").replace(
        "location / { return 200 \"$request_method $uri $args\"; }",
        &locations,
    );
    let server = Server::builder(OURS).configuration(&configuration).start();
    for (target, expected) in [
        ("http://h?x=y", "GET /?x=y HTTP/1.1\r\n"),
        ("http://h?x#f", "GET /?x HTTP/1.1\r\n"),
        ("http://h", "GET / HTTP/1.1\r\n"),
        ("http://h/?", "GET /? HTTP/1.1\r\n"),
    ] {
        let count = origin.received().len();
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let _ = server.exchange(request);
        let received = origin.received();
        let text = String::from_utf8_lossy(&received[count]).into_owned();
        assert!(text.starts_with(expected), "{target}: {text}");
    }
}

const HTTP09: &str = "error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log %FOLDER%/access.log;
        %OUTER%
        server { listen 127.0.0.1:%PORT%; %INNER% return 200 served; }
        server { listen 127.0.0.1:%PORT%; server_name other; %OTHER% return 200 other; }
    }";

/// Settings of `http`, of the address's default server and of another one, and whether HTTP/0.9 is
/// served.
const HTTP09_SETTINGS: &[(&str, &str, &str, bool)] = &[
    ("", "", "", true),
    ("http09 off;", "", "", false),
    ("http09 off;", "http09 on;", "", true),
    ("", "http09 off;", "", false),
    ("", "http09 off;", "http09 on;", false),
    ("", "", "http09 off;", true),
];

#[test]
fn http_0_9_is_refused_where_the_directive_says_so() {
    let refusal = "<html>\r\n<head><title>400 Bad Request</title></head>";
    for (outer, inner, other, is_served) in HTTP09_SETTINGS {
        let configuration = HTTP09
            .replace("%OUTER%", outer)
            .replace("%INNER%", inner)
            .replace("%OTHER%", other);
        let server = Server::builder(OURS).configuration(&configuration).start();
        let case = format!("{outer} {inner} {other}");
        let later = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /\r\n";
        for (request, body) in [
            ("GET /\r\n", "served"),
            ("GET /\n", "served"),
            ("GET http://other/\r\n", "other"),
            (later, "served"),
        ] {
            let answer = String::from_utf8(server.exchange(request)).unwrap();
            let alone = if request == later {
                // A whole answer comes first.
                answer.split_once("\r\n\r\nserved").unwrap().1
            } else {
                &answer
            };
            // Either is a body alone, and the connection is closed.
            match is_served {
                true => assert_eq!(alone, body, "{case} {request:?}"),
                false => assert!(alone.starts_with(refusal), "{case} {request:?}: {alone}"),
            }
        }
        let versioned = server.exchange("GET / HTTP/1.0\r\n\r\n");
        assert!(versioned.starts_with(b"HTTP/1.1 200 "), "{case}");
        server.wait_for_log("access.log", "\"GET http://other/\"");
        let log = server.log("error.log");
        let is_logged = log.contains("client sent HTTP/0.9 request while reading client request");
        assert_eq!(is_logged, !is_served, "{case}: {log}");
    }
}
