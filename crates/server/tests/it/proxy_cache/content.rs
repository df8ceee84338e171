//! Tests of caches and the content of requests: whoever asks for a path with content gets no answer
//! to another one's, whatever the method, and however the key sees the content.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::cache::{self, Counting, MEMORY, response, status};
use crate::support::content_origin::{self, Framing, Protocol, ask_with, said};
use crate::support::curl;
use turnpike_testkit::{Response, Server};

/// A server with the zone `Z` for an origin that answers with the content; `http` stands before
/// the server block.
fn server_of(protocol: Protocol, http: &str, directives: &str) -> Server {
    let port = content_origin::start(protocol);
    let (family, pass) = match protocol {
        Protocol::Http => ("proxy", "proxy_pass http://127.0.0.1"),
        Protocol::FastCgi => ("fastcgi", "fastcgi_pass 127.0.0.1"),
        Protocol::Scgi => ("scgi", "scgi_pass 127.0.0.1"),
        Protocol::Uwsgi => ("uwsgi", "uwsgi_pass 127.0.0.1"),
    };
    let configuration = format!(
        "events {{ }}
        http {{
            access_log off;
            {http}
            {MEMORY}
            server {{
                listen 127.0.0.1:%PORT%;
                http2 on;
                location / {{
                    {pass}:{port};
                    proxy_cache Z;
                    fastcgi_param REQUEST_METHOD $request_method;
                    uwsgi_param CONTENT_LENGTH $content_length;
                    add_header X-Cache $upstream_cache_status always;
                    add_header X-Why $upstream_cache_not_stored always;
                    add_header X-Slice $slice_range;
                    {directives}
                }}
            }}
        }}"
    );
    let configuration = configuration.replace("proxy_cache", &format!("{family}_cache"));
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

fn ask(server: &Server, request: &str, content: &str) -> Response {
    ask_with(&mut server.connect(), request, Framing::Length, content)
}

/// The statuses of [`REQUESTS`] where the key holds the content, and where it does not.
const SEEN: [&str; 7] = ["MISS", "HIT", "MISS", "HIT", "HIT", "MISS", "HIT"];
const UNSEEN: [&str; 7] = ["", "", "", "", "", "MISS", "HIT"];
/// The same where no content could be in the key: a response to POST could be stored for GET.
const IGNORED: [&str; 7] = ["", "", "", "", "MISS", "MISS", "HIT"];

/// Methods and contents.
const REQUESTS: [(&str, &str); 7] = [
    ("GET", "a"),
    ("GET", "a"),
    ("GET", "b"),
    ("HEAD", "b"),
    ("POST", "a"),
    ("GET", ""),
    ("HEAD", ""),
];

/// Maps of the content, and of the method.
const MAPS: &str = "
    map $request_body $mapped { default $request_body; }
    map $mapped $again { default $mapped; }
    map $request_body $grouped { default ''; ~^(?<first>.) $first; }
    map $request_method $by_method { default none; PUT $request_body; }
    split_clients $request_body $part { 50% x; * y; }
    log_format content $request_body;";

/// What stands before the server block and in the location, and the statuses of [`REQUESTS`].
const KEYS: &[(&str, &str, [&str; 7])] = &[
    ("", "proxy_cache_key $uri|$request_body;", SEEN),
    ("", "proxy_cache_key ${uri}|${request_body};", SEEN),
    ("", "proxy_cache_key $uri|$echo_request_body;", SEEN),
    (MAPS, "proxy_cache_key $uri|$mapped;", SEEN),
    (MAPS, "proxy_cache_key $uri|$again;", SEEN),
    (MAPS, "proxy_cache_key $uri|$grouped;", SEEN),
    // What is computed once is computed before the content is read.
    (
        MAPS,
        "if ($again = x) { return 444; } proxy_cache_key $uri|$again;",
        SEEN,
    ),
    (
        "",
        "proxy_cache_key $uri|$request_body; proxy_request_buffering off;",
        SEEN,
    ),
    (
        "http_strictness nginx;",
        "proxy_cache_key $uri|$request_body;",
        SEEN,
    ),
    // It is set before the content is read.
    (
        "",
        "set $set $request_body; proxy_cache_key $uri|$set;",
        UNSEEN,
    ),
    (MAPS, "set $set $mapped; proxy_cache_key $uri|$set;", UNSEEN),
    (
        "",
        "set_md5 $set $request_body; proxy_cache_key $uri|$set;",
        UNSEEN,
    ),
    (
        "http_strictness nginx;",
        "set $set $request_body; proxy_cache_key $uri|$set;",
        UNSEEN,
    ),
    // It sees what others send.
    (MAPS, "proxy_cache_key $uri|$by_method;", UNSEEN),
    (MAPS, "proxy_cache_key $uri;", IGNORED),
    (MAPS, "proxy_cache_key $uri|$content_length;", IGNORED),
    (MAPS, "", IGNORED),
    (
        "client_body_in_file_only clean;",
        "proxy_cache_key $uri|$request_body_file|$request_body;",
        UNSEEN,
    ),
    // As nginx does, except that the POST may have changed what is stored.
    (
        "http_strictness nginx;",
        "proxy_cache_key $uri;",
        ["MISS", "HIT", "HIT", "HIT", "MISS", "MISS", "HIT"],
    ),
];

#[test]
fn a_request_with_content_gets_the_answer_to_its_own() {
    for (http, directives, expected) in KEYS {
        let directives = format!("proxy_cache_methods POST; {directives}");
        let server = server_of(Protocol::Http, http, &directives);
        let is_lenient = expected[2] == "HIT";
        for ((method, content), expected) in REQUESTS.iter().zip(expected) {
            let got = ask(&server, &format!("{method} /a"), content);
            let case = format!("{method} {content}: {http} {directives}");
            assert_eq!((got.status, status(&got)), (200, *expected), "{case}");
            if !is_lenient {
                assert_eq!(got.header("X-Content"), Some(&*said(content)), "{case}");
            }
            if expected.is_empty() && *method != "POST" {
                assert_eq!(got.header("X-Why"), Some("content"), "{case}");
            }
        }
    }
}

#[test]
fn the_caches_of_applications_see_content_too() {
    for protocol in [Protocol::FastCgi, Protocol::Scgi, Protocol::Uwsgi] {
        for (key, expected) in [
            (
                "proxy_cache_key $uri|$request_body;",
                ["MISS", "HIT", "MISS", "MISS"],
            ),
            ("proxy_cache_key $uri;", ["", "", "", "MISS"]),
        ] {
            let server = server_of(protocol, "", key);
            for (content, expected) in ["a", "a", "b", ""].into_iter().zip(expected) {
                let got = ask(&server, "GET /a", content);
                let case = format!("{protocol:?} {key} {content}");
                assert_eq!((got.status, status(&got)), (200, expected), "{case}");
                assert_eq!(got.text(), content, "{case}");
            }
        }
    }
}

/// How content is framed, what it is, and the statuses with a key that holds it, and with another.
const FRAMINGS: &[(Framing, &str, [&str; 2])] = &[
    (Framing::Length, "", ["MISS", "MISS"]),
    (Framing::Chunked, "", ["HIT", "HIT"]),
    (Framing::Expected, "", ["HIT", "HIT"]),
    (Framing::Chunked, "content", ["MISS", ""]),
    (Framing::Length, "content", ["HIT", ""]),
    (Framing::Expected, "content", ["HIT", ""]),
    (Framing::Chunked, "other", ["MISS", ""]),
];

#[test]
fn content_counts_however_it_is_framed() {
    for (number, key) in ["$uri|$request_body", "$uri"].into_iter().enumerate() {
        for buffering in ["on", "off"] {
            let directives = format!("proxy_cache_key {key}; proxy_request_buffering {buffering};");
            let server = server_of(Protocol::Http, "", &directives);
            for (framing, content, expected) in FRAMINGS {
                let got = ask_with(&mut server.connect(), "GET /a", *framing, content);
                let case = format!("{framing:?} {content} {directives}");
                assert_eq!(status(&got), expected[number], "{case}");
                assert_eq!(got.text(), *content, "{case}");
            }
        }
    }
}

#[test]
fn content_counts_over_http2() {
    let server = server_of(Protocol::Http, "", "proxy_cache_key $uri|$request_body;");
    let status = "\n%header{x-cache}";
    for (content, expected) in [("a", "MISS"), ("a", "HIT"), ("b", "MISS"), ("", "MISS")] {
        let arguments = [
            "--http2-prior-knowledge",
            "-X",
            "GET",
            "-d",
            content,
            "-w",
            status,
        ];
        let got = curl::curl(&server, "/a", &arguments);
        let got = String::from_utf8(got).unwrap();
        assert_eq!(got, format!("{content}\n{expected}"));
    }
}

#[test]
fn content_in_a_file_passes_uncached() {
    let directives = "proxy_cache_key $uri|$request_body; client_body_buffer_size 1k;";
    for http in ["", "http_strictness nginx;"] {
        let server = server_of(Protocol::Http, http, directives);
        for first in ["x", "x", "y"] {
            let content = first.repeat(40_000);
            let got = ask(&server, "GET /a", &content);
            assert_eq!((got.status, status(&got)), (200, ""));
            assert!(got.text() == content);
        }
    }
}

#[test]
fn the_limits_of_content_hold_before_the_key_is_made() {
    let directives = "proxy_cache_key $uri|$request_body; client_max_body_size 10;
        client_body_timeout 50ms;";
    let server = server_of(Protocol::Http, "", directives);
    let large = "x".repeat(11);
    assert_eq!(ask(&server, "GET /a", &large).status, 413);
    let got = ask_with(&mut server.connect(), "GET /a", Framing::Chunked, &large);
    assert_eq!(got.status, 413);
    let head = "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na";
    assert_eq!(server.connect().round(head).status, 408);
}

/// Conditions that see content, and the statuses of GET with `n`, `n`, `a` and `a`.
const CONDITIONS: &[(&str, &str, [&str; 4])] = &[
    (
        "",
        "proxy_cache_key $uri|$request_body; proxy_no_cache $is_n;",
        ["MISS", "MISS", "MISS", "HIT"],
    ),
    (
        "",
        "proxy_cache_key $uri|$request_body; proxy_cache_bypass $is_n;",
        ["BYPASS", "BYPASS", "MISS", "HIT"],
    ),
    (
        "http_strictness nginx;",
        "proxy_cache_key $uri; proxy_no_cache $is_n; proxy_request_buffering off;",
        ["MISS", "MISS", "MISS", "HIT"],
    ),
    (
        "http_strictness nginx;",
        "proxy_cache_key $uri; proxy_cache_bypass $request_body;",
        ["BYPASS", "BYPASS", "BYPASS", "BYPASS"],
    ),
];

#[test]
fn conditions_see_content() {
    for (http, directives, expected) in CONDITIONS {
        let http = format!("map $request_body $is_n {{ default 0; n 1; }} {http}");
        let server = server_of(Protocol::Http, &http, directives);
        for (content, expected) in ["n", "n", "a", "a"].into_iter().zip(expected) {
            let got = ask(&server, "GET /a", content);
            assert_eq!(status(&got), *expected, "{content} {directives}");
        }
    }
}

#[test]
fn a_request_with_content_is_neither_sliced_nor_renewed_in_the_background() {
    let directives = "slice 10; proxy_cache_key $uri|$slice_range|$request_body;";
    let server = server_of(Protocol::Http, "", directives);
    for (content, range) in [("", Some("bytes=0-9")), ("a", None)] {
        let got = ask(&server, "GET /a", content);
        assert_eq!(
            (got.text().as_str(), got.header("X-Slice")),
            (content, range)
        );
    }
    let origin = Counting::start(&response("X-Accel-Expires: @1\r\n", "x"));
    let directives = "proxy_cache_key $uri|$request_body; proxy_cache_use_stale updating;
        proxy_cache_background_update on;";
    let server = cache::server(&origin, MEMORY, directives);
    for expected in ["MISS", "EXPIRED"] {
        assert_eq!(status(&ask(&server, "GET /a", "a")), expected);
    }
    for head in origin.heads() {
        assert!(head.contains("Content-Length: 1\r\n"), "{head}");
    }
}

#[test]
fn the_answer_to_content_is_no_file_for_others() {
    for (http, content, is_stored) in [
        ("", "a", false),
        ("", "", true),
        ("http_strictness nginx;", "a", true),
    ] {
        let port = content_origin::start(Protocol::Http);
        let configuration = format!(
            "sandbox off;
            events {{ }}
            http {{
                {http}
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{
                        proxy_pass http://127.0.0.1:{port};
                        proxy_store %FOLDER%/stored$uri;
                    }}
                }}
            }}"
        );
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .start();
        let folder = server.folder().join("stored");
        std::fs::create_dir(&folder).unwrap();
        // If root runs the test, the serving process has another user.
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(ask(&server, "GET /a", content).text(), content);
        assert_eq!(folder.join("a").exists(), is_stored, "{http} {content}");
    }
}
