//! What a message of HTTP/3 has beside its head and body: interim responses, trailers and
//! tunnels.

use turnpike_testkit::{Origin, Server, Step};

use super::start;
use crate::http2::{trailers, tunnels};
use crate::support::http3::{Client, has_client};
use crate::support::tls::keys;

/// More than the windows of a stream that has just begun let through.
const ECHO_BYTES: usize = 300_000;

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const LINKED: &str = "HTTP/1.1 200 OK\r\nX-Accel-Expires: @1\r\nLink: </b.css>; rel=preload\r\n\
    Content-Length: 3\r\n\r\nold";

/// The first line of what a new client prints for a command.
fn told(server: &Server, options: &[&str], command: &str) -> String {
    Client::start(server, options).ask(command)
}

#[test]
fn interim_responses_reach_clients_of_http3() {
    if !has_client("interim_responses_reach_clients_of_http3") {
        return;
    }
    let hinted = vec![Step::ReadHead, Step::send(HINTS), Step::send(OK)];
    let mut uploaded = hinted.clone();
    uploaded.insert(1, Step::ReadBytes(5));
    let hinting = Origin::start(vec![hinted, uploaded]);
    let cached = [LINKED, OK].map(|answer| vec![Step::ReadHead, Step::send(answer)]);
    let cached = Origin::start(cached.to_vec());
    let http = format!(
        "proxy_cache_path m keys_zone=m:1m memory;
        client_body_temp_path %FOLDER%/body;
        proxy_temp_path %FOLDER%/proxy;
        server {{
            %QUIC%
            location /hints {{ early_hints 1; proxy_pass http://127.0.0.1:{}; }}
            location /cached {{
                proxy_cache m;
                proxy_cache_early_hints on;
                proxy_pass http://127.0.0.1:{};
            }}
        }}",
        hinting.port(),
        cached.port()
    );
    let keys = keys();
    let server = start(&keys, &http);
    let link = ["--show", "link"];
    let expects = ["--show", "link", "--field", "expect=100-continue"];
    let navigates = ["--show", "link", "--field", "sec-fetch-mode=navigate"];
    // Options, a command, and what it prints.
    let cases: [(&[&str], &str, &str); 4] = [
        (
            &link,
            "heads GET /hints",
            "103 link=</a.css>; rel=preload; 200; ok",
        ),
        (
            &expects,
            "heads POST /hints 5",
            "100; 103 link=</a.css>; rel=preload; 200; ok",
        ),
        (
            &navigates,
            "heads GET /cached",
            "200 link=</b.css>; rel=preload; old",
        ),
        // The copy has become too old: its hints come before the new answer.
        (
            &navigates,
            "heads GET /cached",
            "103 link=</b.css>; rel=preload; 200; ok",
        ),
    ];
    for (options, command, expected) in cases {
        assert_eq!(told(&server, options, command), expected, "{command}");
    }
}

const PASSED: &str = "
    proxy_http_version 2;
    proxy_pass_trailers on;
    client_body_temp_path %FOLDER%/body;
    proxy_temp_path %FOLDER%/proxy;
    server {
        %QUIC%
        location /own { add_trailer X-Own end; return 200 own; }
        location /grpc { grpc_pass grpc://127.0.0.1:ORIGIN; }
        location /buffered { proxy_pass http://127.0.0.1:ORIGIN; }
        location /unbuffered { proxy_request_buffering off; proxy_pass http://127.0.0.1:ORIGIN; }
        location /dropped { proxy_pass_trailers off; proxy_pass http://127.0.0.1:ORIGIN; }
    }";

#[test]
fn trailers_are_passed_on_both_ways() {
    if !has_client("http3::trailers_are_passed_on_both_ways") {
        return;
    }
    let keys = keys();
    let http = PASSED.replace("ORIGIN", &trailers::origin().to_string());
    let server = start(&keys, &http);
    let shown = ["--show", "x-end", "--show", "x-own", "--trailer", "x-sum=1"];
    let cases = [
        ("heads GET /own", "200; trailers x-own=end; own"),
        ("heads POST /grpc 5", "200; trailers x-end=a b; 5 x-sum=1"),
        (
            "heads POST /buffered 5",
            "200; trailers x-end=a b; 5 x-sum=1",
        ),
        (
            "heads POST /buffered 300000",
            "200; trailers x-end=a b; 300000 x-sum=1",
        ),
        (
            "heads POST /unbuffered 300000",
            "200; trailers x-end=a b; 300000 x-sum=1",
        ),
        ("heads POST /dropped 5", "200; 5"),
    ];
    let mut client = Client::start(&server, &shown);
    for (command, expected) in cases {
        assert_eq!(client.ask(command), expected, "{command}");
    }
}

#[test]
fn tunnels_are_opened_by_extended_connect() {
    if !has_client("tunnels_are_opened_by_extended_connect") {
        return;
    }
    let (port, heads) = tunnels::echoing_origin();
    let http = format!(
        "server {{
            %QUIC%
            location /socket {{
                proxy_pass http://127.0.0.1:{port};
                proxy_set_header Upgrade $http_upgrade;
                proxy_set_header Connection $http_connection;
            }}
            location / {{ return 404; }}
        }}"
    );
    let keys = keys();
    let server = start(&keys, &http);
    // A greeting, and what the client has sent.
    let whole = format!("1 200 {} hellox", ECHO_BYTES + 5);
    let command = format!("tunnel /socket {ECHO_BYTES}");
    let mut client = Client::start(&server, &[]);
    assert_eq!(client.ask(&command), whole);
    let refused = client.ask("tunnel /none 0");
    assert!(refused.starts_with("1 404 "), "{refused}");
    let heads = heads.lock().unwrap().join("");
    for line in ["GET /socket HTTP/1.1\r\n", "Upgrade: websocket\r\n"] {
        assert!(heads.contains(line), "{line}: {heads}");
    }
    server.wait_for_log("access.log", "HTTP/3.0\" 101");
}
