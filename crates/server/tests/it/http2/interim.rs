//! Interim responses to clients of HTTP/2: `103 Early Hints` of upstream servers that speak HTTP/1
//! and HTTP/2, and `100 Continue` for uploads. curl is the client.

use turnpike_testkit::{Origin, Server, Step};

use crate::support::curl::curl;
use crate::support::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, block, frame};
use crate::support::http2_origin;

const CONFIGURATION: &str = "
    events { }
    http {
        access_log off;
        early_hints 1;
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            location /proxy { proxy_pass http://127.0.0.1:HTTP1; }
            location /proxy2 { proxy_pass http://127.0.0.1:HTTP2; proxy_http_version 2; }
            location /grpc { grpc_pass grpc://127.0.0.1:HTTP2; }
            location /off { early_hints 0; grpc_pass grpc://127.0.0.1:HTTP2; }
        }
    }";

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A hint before each response.
fn answer(_: usize, stream: u32) -> Vec<u8> {
    let hint = block(&[(":status", "103"), ("link", "</a.css>; rel=preload")]);
    let response = block(&[(":status", "200")]);
    let answer = [
        frame(HEADERS, END_HEADERS, stream, &hint),
        frame(HEADERS, END_HEADERS, stream, &response),
        frame(DATA, END_STREAM, stream, b"ok"),
    ];
    answer.concat()
}

/// A path, curl's options, and the status lines and hints that it shows.
const CASES: &[(&str, &[&str], &str)] = &[
    (
        "/proxy",
        &[],
        "HTTP/2 103|link: </a.css>; rel=preload|HTTP/2 200|ok",
    ),
    (
        "/proxy2",
        &[],
        "HTTP/2 103|link: </a.css>; rel=preload|HTTP/2 200|ok",
    ),
    (
        "/grpc",
        &[],
        "HTTP/2 103|link: </a.css>; rel=preload|HTTP/2 200|ok",
    ),
    ("/off", &[], "HTTP/2 200|ok"),
    (
        "/grpc/upload",
        &["-d", "text", "-H", "Expect: 100-continue"],
        "HTTP/2 100|HTTP/2 103|link: </a.css>; rel=preload|HTTP/2 200|ok",
    ),
];

#[test]
fn interim_responses_reach_clients_of_http2() {
    let script = vec![Step::ReadHead, Step::send(HINTS), Step::send(OK)];
    let http1 = Origin::start(vec![script]);
    let configuration = CONFIGURATION.replace("HTTP1", &http1.port().to_string());
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration.replace("HTTP2", &http2_origin::start(answer).to_string()))
        .start();
    for (path, options, expected) in CASES {
        let options = [&["-i", "--http2-prior-knowledge"], *options].concat();
        let shown = String::from_utf8(curl(&server, path, &options)).unwrap();
        let told = |line: &&str| {
            let starts = ["HTTP/2 ", "link: ", "ok"];
            starts.iter().any(|start| line.starts_with(start))
        };
        let lines: Vec<&str> = shown.lines().map(str::trim_end).filter(told).collect();
        assert_eq!(lines.join("|"), *expected, "{path}: {shown}");
    }
}

/// A browser that opens a page gets the hints of a cache without a directive for hints.
#[test]
fn hints_of_a_cache_reach_browsers() {
    let linked = "HTTP/1.1 200 OK\r\nX-Accel-Expires: @1\r\nLink: </a.css>; rel=preload\r\n\
                  Content-Length: 3\r\n\r\nold";
    let script = [linked, OK].map(|answer| vec![Step::ReadHead, Step::send(answer)]);
    let origin = Origin::start(script.to_vec());
    let configuration = format!(
        "events {{ }}
        http {{
            proxy_cache_path m keys_zone=m:1m memory;
            server {{
                listen 127.0.0.1:%PORT%;
                http2 on;
                proxy_cache m;
                proxy_cache_early_hints on;
                location / {{ proxy_http_version 1.0; proxy_pass http://127.0.0.1:{}; }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    let options = [
        "-i",
        "--http2-prior-knowledge",
        "-H",
        "Sec-Fetch-Mode: navigate",
    ];
    let first = String::from_utf8(curl(&server, "/", &options)).unwrap();
    assert!(first.starts_with("HTTP/2 200"), "{first}");
    let second = String::from_utf8(curl(&server, "/", &options)).unwrap();
    let hint = "HTTP/2 103 \r\nlink: </a.css>; rel=preload\r\n\r\nHTTP/2 200";
    assert!(second.starts_with(hint), "{second}");
    assert!(second.ends_with("ok"), "{second}");
}
