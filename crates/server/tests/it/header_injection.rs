//! Tests of line ends and other control characters that a client puts into values: they must split
//! no head, whichever directive uses the value.

use turnpike_testkit::{Origin, Server, Step};

/// Payloads in a path: a line end and a field, an end of the head, NUL and others.
const PAYLOADS: &[&str] = &[
    "a%0D%0AEvil:%20yes",
    "a%0AEvil:%20yes",
    "a%0D%0A%0D%0AHTTP/1.1%20200%20OK%0D%0AEvil:%20yes",
    "a%0DEvil:%20yes",
    "a%01%1F%7Fb",
];

/// A location, and whether its response comes from the origin.
const LOCATIONS: &[(&str, &str)] = &[
    ("moved", "return 301 https://$host$uri;"),
    ("local", "return 302 /to$uri;"),
    (
        "rewritten",
        "rewrite ^/rewritten/([^/]*)/$ https://other/$1 redirect;",
    ),
    (
        "paged",
        "error_page 404 =302 https://other$uri; return 404;",
    ),
    (
        "added",
        "add_header X-A $1 always; add_header X-B kept; return 200 ok;",
    ),
    (
        "tagged",
        "add_header ETag $1; add_header Last-Modified $1; return 200 ok;",
    ),
    ("located", "add_header Location $1; return 201 ok;"),
    ("lettered", "set $c $1; charset $c; return 200 ok;"),
    ("expiring", "set $e $1; expires $e; return 200 ok;"),
    ("trailed", "add_trailer X-T $1; return 200 ok;"),
    (
        "guarded",
        "auth_basic $1; auth_basic_user_file %FOLDER%/users;",
    ),
    ("passed", "proxy_pass http://127.0.0.1:%ORIGIN%/$1;"),
    ("kept", "proxy_pass http://127.0.0.1:%ORIGIN%;"),
    (
        "cut",
        "rewrite ^/cut/([^/]*)/$ /$1 break; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
    (
        "asked",
        "set $args $1; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
    (
        "set",
        "proxy_set_header X-A $1; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
    (
        "hosted",
        "proxy_set_header Host $1; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
    (
        "method",
        "proxy_method $1; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
    (
        "cookies",
        "proxy_cookie_path / $1; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
    (
        "redirected",
        "proxy_redirect / $1; proxy_pass http://127.0.0.1:%ORIGIN%;",
    ),
];

const ANSWER: &str = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; path=/\r\nLocation: /x\r\n\
                      Content-Length: 2\r\n\r\nok";

fn server(origin: &Origin) -> Server {
    let mut locations = String::new();
    for (name, directives) in LOCATIONS {
        locations += &format!("location ~ ^/{name}/([^/]*)/$ {{ {directives} }}\n");
    }
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
         events {{ }}
         http {{ server {{
             listen 127.0.0.1:%PORT%;
             absolute_redirect off;
             proxy_http_version 1.1;
             {}
         }} }}",
        locations.replace("%ORIGIN%", &origin.port().to_string())
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("users", "u:{PLAIN}p\n")
        .start()
}

/// Checks that all lines of a head end with CRLF and hold no other control character.
fn check_head(name: &str, message: &[u8]) {
    let shown = String::from_utf8_lossy(message);
    let end = message.windows(4).position(|four| four == b"\r\n\r\n");
    let head = &message[..end.unwrap_or_else(|| panic!("{name}: no whole head: {shown:?}"))];
    for line in head.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(!line.iter().any(u8::is_ascii_control), "{name}: {shown:?}");
        assert!(!line.starts_with(b"Evil"), "{name}: {shown:?}");
    }
    let messages = message
        .windows(9)
        .filter(|part| part == b"HTTP/1.1 ")
        .count();
    assert!(messages <= 1, "{name}: {shown:?}");
}

#[test]
fn no_head_is_split_by_what_a_client_sends() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(ANSWER)]]);
    let server = server(&origin);
    for (name, _) in LOCATIONS {
        for payload in PAYLOADS {
            let request =
                format!("GET /{name}/{payload}/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let answer = server.exchange(request);
            check_head(&format!("{name} {payload}"), &answer);
            assert!(answer.starts_with(b"HTTP/1.1 "), "{name} {payload}");
        }
    }
    for request in origin.received() {
        check_head("upstream", &request);
    }
}

/// A path, and a line that the response must have.
const VALUES: &[(&str, &str)] = &[
    ("/moved/a%0D%0Ab%00", "HTTP/1.1 400 Bad Request"),
    (
        "/moved/a%0D%0A%09%7Fb/",
        "\r\nLocation: https://h/moved/a%0D%0A%09%7Fb/\r\n",
    ),
    ("/located/a%0D%0Ab/", "\r\nLocation: a%0D%0Ab\r\n"),
    ("/added/a%0Ab/", "\r\nX-B: kept\r\n"),
    ("/added/a%09b/", "\r\nX-A: a\tb\r\n"),
];

#[test]
fn multi_line_values_of_the_configuration_are_sent_on_one_line() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "events { }
             http { server {
                 listen 127.0.0.1:%PORT%;
                 add_header Content-Security-Policy \"default-src 'self';
                     script-src $host;
                 \";
                 return 200 ok;
             } }",
        )
        .start();
    let policy = "default-src 'self'; script-src localhost;";
    let response = server.get("/");
    assert_eq!(response.header("Content-Security-Policy"), Some(policy));
}

#[test]
fn nginx_leniency_accepts_values_that_split_no_head() {
    for (strictness, sent) in [("rfc", false), ("nginx", true)] {
        let configuration = format!(
            "events {{ }}
             http {{ server {{
                 listen 127.0.0.1:%PORT%;
                 http_strictness {strictness};
                 add_header X-A $uri;
                 return 200 ok;
             }} }}"
        );
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .start();
        assert_eq!(server.get("/%02").header("X-A").is_some(), sent);
        for path in ["/%0A", "/%0D", "/%0D%0AEvil:%20yes"] {
            let response = server.get(path);
            assert_eq!(response.header("X-A"), None, "{path}");
            assert_eq!(response.header("Evil"), None, "{path}");
        }
    }
}

#[test]
fn targets_are_escaped_and_other_fields_left_out() {
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(ANSWER)]]);
    let server = server(&origin);
    for (path, value) in VALUES {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = server.exchange(request);
        let shown = String::from_utf8_lossy(&answer);
        assert!(shown.contains(value), "{path}: {shown:?}");
    }
    server.wait_for_log("error.log", "header \"X-A\" is left out of the response");
    assert_eq!(server.get("/passed/a%0D%0A%20b/").status, 200);
    assert_eq!(server.get("/set/a%0Db/").status, 200);
    assert_eq!(server.get("/hosted/a%0Db/").status, 200);
    let received = origin.received();
    let text = |index: usize| String::from_utf8_lossy(&received[index]).into_owned();
    assert!(
        text(0).starts_with("GET /a%0D%0A%20b HTTP/1.1\r\n"),
        "{}",
        text(0)
    );
    assert!(!text(1).contains("X-A"), "{}", text(1));
    let host = format!("\r\nHost: 127.0.0.1:{}\r\n", origin.port());
    assert!(text(2).contains(&host), "{}", text(2));
    server.wait_for_log("error.log", "header \"X-A\" is left out of the request");
}
