//! Tests of fields that `Connection` names, which belong to one connection and are not passed on.

use crate::support::one_origin::{last_request, origin, server, server_under};
use turnpike_testkit::{Origin, Response, Server, Step};

/// Directives, fields of the client, and the fields that the upstream server must and must not get.
const REQUESTS: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "",
        "Connection: X-A, x-b\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\n",
        &["X-C: 3"],
        &["X-A", "X-B"],
    ),
    (
        "",
        "X-A: 1\r\nConnection: close\r\nConnection:\tx-a\t,\r\nX-A: 2\r\n",
        &[],
        &["X-A"],
    ),
    (
        "",
        "Connection: Cookie, Referer\r\nCookie: a\r\nReferer: b\r\nAccept: c\r\n",
        &["Accept: c"],
        &["Cookie", "Referer"],
    ),
    (
        "proxy_set_header X-A mine;",
        "Connection: x-a\r\nX-A: 1\r\n",
        &["X-A: mine"],
        &["X-A: 1"],
    ),
    (
        "proxy_set_header Host $host;",
        "Connection: Host, Content-Length\r\nContent-Length: 0\r\n",
        &["Host: h"],
        &[],
    ),
];

#[test]
fn fields_that_connection_names_are_not_passed_on() {
    for strictness in ["rfc", "nginx"] {
        for (directives, fields, there, gone) in REQUESTS {
            let origin = origin("");
            let server = server_under(strictness, &origin, directives);
            let mut peer = server.connect();
            let _ = peer.round(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
            let request = last_request(&origin);
            for line in *there {
                assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
            }
            for name in *gone {
                assert!(!request.contains(&format!("\r\n{name}")), "{request}");
            }
        }
    }
}

fn get(server: &Server, fields: &str) -> Response {
    let mut peer = server.connect();
    peer.round(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
}

#[test]
fn answers_lose_the_same_fields_when_they_are_stored_and_when_not() {
    let fields = "Connection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\nProxy-Connection: close\r\n\
                  Cache-Control: max-age=60\r\n";
    for directives in [
        "",
        "proxy_cache z; add_header X-Cache $upstream_cache_status;",
    ] {
        let origin = origin(fields);
        let server = server(&origin, directives);
        for expected in ["MISS", "HIT"] {
            let response = get(&server, "");
            if !directives.is_empty() {
                assert_eq!(response.header("X-Cache"), Some(expected));
            }
            assert_eq!(response.header("X-Hop"), None, "{}", response.head);
            assert_eq!(response.header("Proxy-Connection"), None);
            assert_eq!(response.header("X-End"), Some("2"));
        }
    }
}

#[test]
fn fields_that_are_not_passed_on_select_no_stored_response() {
    let answer = |language: &str| {
        let text = format!(
            "HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nCache-Control: max-age=60\r\n\
             Content-Length: 2\r\n\r\n{language}"
        );
        vec![Step::ReadHead, Step::send(text)]
    };
    let origin = Origin::start(vec![answer("en"), answer("de")]);
    let server = server(&origin, "proxy_cache z;");
    let hidden = "Connection: Accept-Language\r\nAccept-Language: de\r\n";
    assert_eq!(get(&server, hidden).text(), "en");
    assert_eq!(get(&server, "Accept-Language: de\r\n").text(), "de");
    assert_eq!(get(&server, hidden).text(), "en");
    assert_eq!(origin.received().len(), 2);
}
