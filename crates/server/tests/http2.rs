//! HTTP/2 with clients: curl speaks with us, by prior knowledge.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use turnpike_testkit::Server;

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            root %FOLDER%/html;
            location /say { return 200 \"$http2 $server_protocol $http_host $http_cookie\"; }
            location /missing { return 404 gone; }
            location /limited { limit_rate 1m; alias %FOLDER%/html/large; }
            location /echo { proxy_pass http://127.0.0.1:%PORT%/body; }
            location /body { proxy_pass http://127.0.0.1:%PORT%/length; }
            location /length { return 200 \"$content_length $http2.\"; }
        }
    }";

/// What curl prints for a target, and the version it spoke.
fn curl(server: &Server, target: &str, more: &[&str]) -> Vec<u8> {
    let address = format!("http://127.0.0.1:{}{target}", server.port());
    let mut command = Command::new("curl");
    command
        .args(["-s", "--max-time", "20"])
        .args(more)
        .arg(address);
    command.output().unwrap().stdout
}

#[test]
fn curl_is_answered_over_http2_and_http1_on_one_listener() {
    let large: Vec<u8> = (0..700_000u32)
        .map(|number| (number * 31 >> 3) as u8)
        .collect();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/small", "small")
        .file("html/large", large.as_slice())
        .start();
    let host = format!("127.0.0.1:{}", server.port());
    let http2 = "--http2-prior-knowledge";
    let version = "%{http_code} %{http_version}";
    let upload = format!("@{}", server.folder().join("html/large").display());
    let said = format!("h2c HTTP/2.0 {host} a=b");
    let said_before = format!(" HTTP/1.1 {host} ");
    let cases: &[(&str, &[&str], &[u8])] = &[
        ("/small", &[http2], b"small"),
        ("/large", &[http2], &large),
        ("/large", &[http2, "-r", "9-99999"], &large[9..100_000]),
        ("/limited", &[http2], &large),
        ("/say", &[http2, "-b", "a=b"], said.as_bytes()),
        ("/say", &[], said_before.as_bytes()),
        ("/small", &[http2, "-w", version], b"small200 2"),
        (
            "/small",
            &[http2, "-I", "-o", "/dev/null", "-w", version],
            b"200 2",
        ),
        ("/missing", &[http2, "-w", version], b"gone404 2"),
        ("/echo", &[http2, "--data-binary", &upload], b"700000 ."),
        ("/echo", &[http2], b" ."),
    ];
    for (target, more, expected) in cases {
        let printed = curl(&server, target, more);
        assert!(
            printed == *expected,
            "{target} {more:?}: {} bytes",
            printed.len()
        );
    }
}
