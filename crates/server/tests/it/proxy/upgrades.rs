//! Tests of `proxy_websocket`: which upgrades a server is asked for, and what the log says of one
//! that it was not.

use turnpike_testkit::Server;

const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

/// Tells what it was asked.
const ORIGIN: &str = "events { } http { server { listen 127.0.0.1:%PORT%;
    location / { return 200 \"$http_upgrade|$http_connection\"; }
    location /426 { return 426; } } }";

const WEBSOCKET: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n";

/// Lines of the location, what the client asks with, and what the server is asked.
const CASES: &[(&str, &str, &str)] = &[
    ("", WEBSOCKET, "|"),
    ("proxy_websocket off;", WEBSOCKET, "|"),
    ("proxy_websocket auto;", WEBSOCKET, "websocket|upgrade"),
    ("proxy_websocket on;", WEBSOCKET, "websocket|upgrade"),
    ("proxy_websocket auto;", "", "|"),
    // Without the option it is no upgrade (RFC 9110 section 7.8).
    ("proxy_websocket auto;", "Upgrade: websocket\r\n", "|"),
    (
        "proxy_websocket auto;",
        "Upgrade: tcp, WebSocket\r\nConnection: keep-alive, upgrade\r\n",
        "WebSocket|upgrade",
    ),
    (
        "proxy_websocket on;",
        "Upgrade: tcp, h2c\r\nConnection: upgrade\r\n",
        "tcp|upgrade",
    ),
    (
        "proxy_websocket auto;",
        "Upgrade: tcp\r\nConnection: upgrade\r\n",
        "|",
    ),
    // A line to keep connections says nothing of upgrades.
    (
        "proxy_websocket auto; proxy_set_header Connection \"\";",
        WEBSOCKET,
        "websocket|upgrade",
    ),
    // Lines for the fields decide.
    (
        "proxy_websocket auto; proxy_set_header Upgrade own; proxy_set_header Connection b;",
        WEBSOCKET,
        "own|b",
    ),
    (
        "proxy_websocket on; proxy_set_header Upgrade \"\";",
        WEBSOCKET,
        "|",
    ),
    (
        "proxy_websocket auto; proxy_http_version 1.0;",
        WEBSOCKET,
        "|",
    ),
];

#[test]
fn upgrades_that_clients_ask_for_are_passed_on() {
    let origin = Server::builder(TURNPIKE).configuration(ORIGIN).start();
    let to = origin.port();
    let locations = CASES.iter().enumerate().map(|(at, (lines, ..))| {
        format!("location = /{at} {{ proxy_pass http://127.0.0.1:{to}; {lines} }}\n")
    });
    let locations: String = locations.collect();
    let text = format!("events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%; {locations} }} }}");
    let server = Server::builder(TURNPIKE).configuration(&text).start();
    for (at, (lines, fields, expected)) in CASES.iter().enumerate() {
        let mut peer = server.connect();
        let response = peer.round(format!("GET /{at} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        // Some say that the connection ends or goes on.
        let asked = response
            .text()
            .replace("|close", "|")
            .replace("|keep-alive", "|");
        assert_eq!(asked, *expected, "{lines} {fields:?}");
    }
}

/// A path with its lines, what the client asks with, and whether the log has a hint.
const HINTS: &[(&str, &str, &str, bool)] = &[
    ("/a", "", WEBSOCKET, true),
    ("/426", "", "", true),
    ("/b", "", "", false),
    ("/c", "proxy_websocket auto;", WEBSOCKET, false),
    (
        "/d",
        "proxy_set_header Upgrade $http_upgrade;",
        WEBSOCKET,
        false,
    ),
];

#[test]
fn the_log_says_what_an_upgrade_lacks() {
    let origin = Server::builder(TURNPIKE).configuration(ORIGIN).start();
    let to = origin.port();
    for (path, lines, fields, has_hint) in HINTS {
        let text = format!(
            "error_log %FOLDER%/error.log warn; events {{ }} http {{ server {{
            listen 127.0.0.1:%PORT%; location / {{ proxy_pass http://127.0.0.1:{to}; {lines} }}
            }} }}"
        );
        let server = Server::builder(TURNPIKE).configuration(&text).start();
        let mut peer = server.connect();
        peer.round(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        let log = server.log("error.log");
        let hint = "write \"proxy_websocket auto;\" in this location";
        assert_eq!(log.contains(hint), *has_hint, "{path} {lines}: {log}");
    }
}
