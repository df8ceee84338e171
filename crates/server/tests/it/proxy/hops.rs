//! Tests of the fields about a message's route: `Via`, and `Max-Forwards`.

use crate::support::one_origin::{last_request, origin, server};
use turnpike_testkit::Server;

/// Directives, the version and fields of the request, `Via` upstream, and `Via` to the client.
const VIAS: &[(&str, &str, &str, &str, &str)] = &[
    ("", "1.1", "Via: 1.0 a\r\n", "1.0 a", "1.1 up"),
    ("via off;", "1.1", "", "", "1.1 up"),
    ("via on;", "1.1", "", "1.1 turnpike", "1.1 up, 1.1 turnpike"),
    (
        "via edge.example:8080;",
        "1.0",
        "Via: 1.0 a\r\nVia: 1.1 b\r\n",
        "1.0 a, 1.1 b, 1.0 edge.example:8080",
        "1.1 up, 1.1 edge.example:8080",
    ),
    (
        "via on; proxy_set_header Via mine;",
        "1.1",
        "Via: 1.0 a\r\n",
        "mine",
        "1.1 up, 1.1 turnpike",
    ),
];

fn values(head: &str, name: &str) -> String {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let values = lines.filter(|(own, _)| *own == name);
    values
        .map(|(_, value)| value)
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn via_is_added_in_both_directions() {
    for (directives, version, fields, upstream, client) in VIAS {
        let origin = origin("Via: 1.1 up\r\nCache-Control: max-age=60\r\n");
        let server = server(&origin, &format!("proxy_cache z; {directives}"));
        for _ in ["MISS", "HIT"] {
            let mut peer = server.connect();
            let request = format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
            let response = peer.round(request);
            assert_eq!(values(&response.head, "Via"), *client, "{directives}");
        }
        assert_eq!(
            values(&last_request(&origin), "Via"),
            *upstream,
            "{directives}"
        );
        assert_eq!(origin.received().len(), 1);
    }
}

#[test]
fn an_invalid_name_is_refused() {
    let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "events { } http { server { listen 127.0.0.1:%PORT%; via \"a b\";
             location / { proxy_pass http://127.0.0.1:1; } } }",
        )
        .try_start();
    let text = format!("{:?}", started.err());
    assert!(text.contains("invalid name"), "{text}");
}

/// The method and `Max-Forwards`, and the value sent upstream; `None`: the request ends here.
const FORWARDS: &[(&str, &str, Option<&str>)] = &[
    ("OPTIONS", "Max-Forwards: 0\r\n", None),
    ("OPTIONS", "max-forwards: 00\r\n", None),
    ("OPTIONS", "Max-Forwards: 1\r\n", Some("0")),
    ("OPTIONS", "Max-Forwards: 10\r\n", Some("9")),
    ("OPTIONS", "Max-Forwards: x\r\n", Some("x")),
    ("OPTIONS", "", Some("")),
    ("GET", "Max-Forwards: 0\r\n", Some("0")),
];

#[test]
fn max_forwards_is_decremented_and_stops_requests() {
    for (method, field, upstream) in FORWARDS {
        let origin = origin("");
        let server = server(&origin, "");
        let mut peer = server.connect();
        let response = peer.round(format!("{method} / HTTP/1.1\r\nHost: h\r\n{field}\r\n"));
        assert_eq!(response.status, 200, "{method} {field}");
        match upstream {
            None => {
                assert!(origin.received().is_empty(), "{method} {field}");
                assert_eq!(response.header("Content-Length"), Some("0"));
            }
            Some(value) => {
                let request = last_request(&origin);
                assert_eq!(values(&request, "Max-Forwards"), *value, "{method} {field}");
            }
        }
    }
    let origin = origin("");
    let server = server(&origin, "");
    for field in ["", "Max-Forwards: 0\r\n", "Max-Forwards: 5\r\n"] {
        let mut peer = server.connect();
        let response = peer.round(format!("TRACE / HTTP/1.1\r\nHost: h\r\n{field}\r\n"));
        assert_eq!(response.status, 405);
    }
    assert!(origin.received().is_empty());
}
