//! Tests of HTTP/2 to upstream servers, with nginx behind `proxy_pass` and `grpc_pass`.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use turnpike_testkit::{Origin, Server, Step};

use crate::support::curl::{curl, large};
use crate::support::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::support::frames::{Client, block, frame, opening};
use crate::support::http2_origin;

const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");
const NGINX: &str = "/usr/sbin/nginx";

const UPSTREAM: &str = "
    error_log %FOLDER%/error.log;
    events { }
    http {
        access_log off;
        client_max_body_size 0;
        client_body_temp_path %FOLDER%/bodies;
        server {
            listen 127.0.0.1:%PORT% http2;
            root %FOLDER%/html;
            location /values {
                return 200 \"$request_method $http2 $http_host $http_te $connection_requests.\";
            }
            location /set { return 200 \"$http_a $http_connection.\"; }
            location /echo { proxy_pass http://unix:%FOLDER%/socket:/length; }
            location /busy { return 503; }
        }
        server {
            listen unix:%FOLDER%/socket;
            location /length { return 200 $content_length; }
        }
    }";

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log off;
        client_max_body_size 0;
        upstream kept { server 127.0.0.1:UPSTREAM; keepalive 4; }
        upstream two { server 127.0.0.1:UPSTREAM; server 127.0.0.1:UPSTREAM backup; }
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            proxy_http_version 2;
            location / { proxy_pass http://kept; }
            location /unbuffered/ {
                proxy_pass http://kept/;
                proxy_buffering off;
                proxy_request_buffering off;
            }
            location /set {
                proxy_pass http://kept;
                proxy_set_header A \"b c\";
                proxy_set_header Connection close;
            }
            location /body { proxy_pass http://kept/echo; proxy_set_body 12345; }
            location /grpc/ { rewrite ^/grpc(.*) $1 break; grpc_pass grpc://kept; }
            location /named/ {
                rewrite ^/named(.*) $1 break;
                grpc_pass kept;
                grpc_set_header Host name;
            }
            location /busy { grpc_pass two; grpc_next_upstream http_503; }
            location /nobody { grpc_pass 127.0.0.1:1; }
        }
    }";

#[test]
fn requests_are_passed_over_http2() {
    let large = large();
    let upstream = Server::builder(NGINX)
        .configuration(UPSTREAM)
        .file("html/small", "small")
        .file("html/large", large.as_slice())
        .start();
    let upstream_port = upstream.port().to_string();
    let server = Server::builder(TURNPIKE)
        .configuration(&CONFIGURATION.replace("UPSTREAM", &upstream_port))
        .start();
    let upload = format!("@{}", upstream.folder().join("html/large").display());
    let http2 = "--http2-prior-knowledge";
    let status = ["-o", "/dev/null", "-w", "%{http_code}"];
    let cases: &[(&str, &[&str], &[u8])] = &[
        ("/small", &[], b"small"),
        (
            "/small",
            &["-I", "-o", "/dev/null", "-w", "%{http_code}"],
            b"200",
        ),
        ("/large", &[], &large),
        ("/large", &[http2], &large),
        ("/large", &[http2, "-r", "9-99999"], &large[9..100_000]),
        ("/missing", &status, b"404"),
        ("/echo", &["--data-binary", &upload], b"700000"),
        ("/unbuffered/large", &[http2], &large),
        ("/unbuffered/echo", &["--data-binary", &upload], b"700000"),
        (
            "/unbuffered/echo",
            &[http2, "--data-binary", &upload],
            b"700000",
        ),
        ("/body", &["--data-binary", "1"], b"5"),
        ("/set", &[], b"b c ."),
        ("/grpc/large", &[http2], &large),
        ("/grpc/echo", &[http2, "--data-binary", &upload], b"700000"),
        ("/nobody", &status, b"502"),
        ("/busy", &status, b"503"),
    ];
    for (target, more, expected) in cases {
        let printed = curl(&server, target, more);
        assert!(
            printed == *expected,
            "{target} {more:?}: {} bytes: {}\n{}",
            printed.len(),
            String::from_utf8_lossy(&printed[..printed.len().min(200)]),
            server.log("error.log")
        );
    }
    // The location's own connection is reused, and the host is sent.
    let text =
        |target: &str, more: &[&str]| String::from_utf8(curl(&server, target, more)).unwrap();
    let reply = text("/values", &[]);
    assert!(reply.starts_with("GET h2c kept  "), "{reply}");
    assert!(!reply.ends_with(" 1."), "{reply}");
    let reply = text("/grpc/values", &[http2, "-H", "TE: trailers", "-X", "POST"]);
    assert!(reply.starts_with("POST h2c kept trailers "), "{reply}");
    let reply = text("/named/values", &[http2]);
    assert!(reply.starts_with("GET h2c name "), "{reply}");
    let log = server.log("error.log");
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("[error]"), 1, "only /nobody fails: {log}");
    assert_eq!(count("\"grpc://127.0.0.1:1/nobody\""), 1, "{log}");
}

/// Directives, and `:authority` and `host` of the request that the upstream server gets.
const HOSTS: &[(&str, &str)] = &[
    ("grpc_pass grpc://kept;", "[kept] []"),
    ("grpc_pass kept; grpc_set_header Host $host;", "[a.test] []"),
    ("grpc_pass kept; grpc_set_header Host '';", "[kept] []"),
    (
        "grpc_pass kept; grpc_set_header host $arg_none;",
        "[kept] []",
    ),
    ("grpc_pass kept; grpc_set_header Host ' ';", "[kept] []"),
    ("proxy_pass http://kept;", "[kept] []"),
    (
        "proxy_pass http://kept; proxy_set_header Host $http_host;",
        "[a.test:81] []",
    ),
    (
        "proxy_pass http://kept; proxy_set_header Host '';",
        "[kept] []",
    ),
    (
        "proxy_pass http://kept; proxy_set_header Host \"\t\";",
        "[kept] []",
    ),
    (
        "proxy_pass http://kept; proxy_set_body b; proxy_set_header Host x;",
        "[x] []",
    ),
];

/// Answers each request on a connection with its `:authority` and its `host`.
async fn tell_hosts(socket: tokio::net::TcpStream) {
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let authority = request.uri().authority().map_or("", |own| own.as_str());
        let host = request
            .headers()
            .get("host")
            .map_or("", |own| own.to_str().unwrap());
        let told = format!("[{authority}] [{host}]");
        let response = http::Response::builder()
            .header("x-told", told)
            .body(())
            .unwrap();
        respond.send_response(response, true).unwrap();
    }
}

#[test]
fn a_host_that_is_set_is_the_authority() {
    let (port_is, port) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            port_is.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(tell_hosts(socket));
            }
        });
    });
    let locations = HOSTS.iter().enumerate();
    let locations: String = locations
        .map(|(number, (directives, _))| format!("location /{number} {{ {directives} }}\n"))
        .collect();
    let server = Server::builder(TURNPIKE)
        .configuration(&format!(
            "error_log %FOLDER%/error.log info;
            events {{ }}
            http {{
                proxy_http_version 2;
                upstream kept {{ server 127.0.0.1:{}; }}
                server {{ listen 127.0.0.1:%PORT%; {locations} }}
            }}",
            port.recv().unwrap()
        ))
        .start();
    for (number, (directives, told)) in HOSTS.iter().enumerate() {
        let request =
            format!("GET /{number} HTTP/1.1\r\nHost: a.test:81\r\nConnection: close\r\n\r\n");
        let answer = String::from_utf8(server.exchange(request)).unwrap();
        let expected = format!("\r\nx-told: {told}\r\n");
        assert!(answer.contains(&expected), "{directives}: {answer}");
    }
}

fn ok(stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, &block(&[(":status", "200")]));
    [head, frame(DATA, END_STREAM, stream, b"ok")].concat()
}

/// The second request of a connection comes too late.
fn goes_away(number: usize, stream: u32) -> Vec<u8> {
    // The last stream, and NO_ERROR.
    let last = [&stream.saturating_sub(2).to_be_bytes()[..], &[0; 4]].concat();
    match number {
        0 => ok(stream),
        _ => frame(GOAWAY, 0, 0, &last),
    }
}

/// The second request of a connection is refused.
fn refuses(number: usize, stream: u32) -> Vec<u8> {
    const REFUSED_STREAM: u32 = 7;
    match number {
        0 => ok(stream),
        _ => frame(RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes()),
    }
}

/// No request is taken.
fn refuses_all(_: usize, stream: u32) -> Vec<u8> {
    refuses(1, stream)
}

#[test]
fn requests_that_a_server_has_not_processed_are_sent_again() {
    // The server, the second request, and its status.
    let cases: &[(http2_origin::Answer, &str, &str)] = &[
        (goes_away, "GET", "200"),
        (goes_away, "POST", "200"),
        (refuses, "POST", "200"),
        (refuses_all, "POST", "502"),
    ];
    for (answer, method, expected) in cases {
        let port = http2_origin::start(*answer).to_string();
        let configuration = CONFIGURATION.replace("UPSTREAM", &port);
        let server = Server::builder(TURNPIKE)
            .configuration(&configuration)
            .start();
        let status = |method: &str| {
            let more = ["-o", "/dev/null", "-w", "%{http_code}", "-X", method];
            String::from_utf8(curl(&server, "/", &more)).unwrap()
        };
        status("GET");
        assert_eq!(
            status(method),
            *expected,
            "{method}: {}",
            server.log("error.log")
        );
    }
}

/// Lets no body come, and sends a frame now and then.
fn pings(mut stream: TcpStream) {
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    let mut next = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    while stream.write_all(&next).is_ok() {
        thread::sleep(Duration::from_millis(20));
        next = frame(PING, 0, 0, b"01234567");
    }
}

#[test]
fn a_server_that_takes_no_body_is_given_up_although_it_talks() {
    let port = http2_origin::accept(pings).to_string();
    let limit = "proxy_http_version 2; proxy_send_timeout 300ms;";
    let configuration = CONFIGURATION.replace("proxy_http_version 2;", limit);
    let server = Server::builder(TURNPIKE)
        .configuration(&configuration.replace("UPSTREAM", &port))
        .start();
    let status = ["-o", "/dev/null", "-w", "%{http_code}", "-m", "20"];
    // More than the window that a connection begins with.
    let body = "x".repeat(100_000);
    let printed = curl(
        &server,
        "/",
        &[&status, &["-d", body.as_str()][..]].concat(),
    );
    assert_eq!(printed, b"504", "{}", server.log("error.log"));
}

/// The window of a body that nobody reads (`http2_body_preread_size`).
const WINDOW_BYTES: usize = 64 * 1024;

/// A window that no longer holds a client of a fast network back.
const WIDE_BYTES: usize = 1024 * 1024;

/// What the windows of a connection may grow by.
const GROWTH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Sends all that the window of stream 1 allows, and waits until as much may be sent again; returns
/// how much that is.
fn fill_window(client: &mut Client, window_bytes: usize) -> usize {
    for start in (0..window_bytes).step_by(16_384) {
        let piece = vec![b'x'; 16_384.min(window_bytes - start)];
        client.send(&frame(DATA, 0, 1, &piece));
    }
    let mut granted = 0;
    while granted < window_bytes {
        let found = client.frame().unwrap();
        if (found.kind, found.stream) == (WINDOW_UPDATE, 1) {
            granted += u32::from_be_bytes(found.payload.try_into().unwrap()) as usize;
        }
    }
    granted
}

#[test]
fn the_window_of_an_upload_grows_while_the_server_waits_for_the_client() {
    let origin = Origin::start(vec![vec![Step::ReadToEnd]]);
    let server = Server::builder(TURNPIKE)
        .configuration(&format!(
            "events {{ }}
            http {{
                access_log off;
                client_max_body_size 0;
                server {{
                    listen 127.0.0.1:%PORT%;
                    http2 on;
                    location / {{
                        proxy_pass http://127.0.0.1:{};
                        proxy_http_version 1.1;
                        proxy_request_buffering off;
                    }}
                }}
            }}",
            origin.port()
        ))
        .start();
    let mut client = Client::connect(&server, &opening(65_535));
    // Our settings are known by now, and so is the window.
    client.send(&frame(SETTINGS, ACK, 0, &[]));
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a.test"),
    ];
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&fields)));
    let mut window_bytes = WINDOW_BYTES;
    // At least the first piece of each round is waited for.
    for _ in 0..2 * WIDE_BYTES / 16_384 {
        window_bytes = fill_window(&mut client, window_bytes);
        if window_bytes >= WIDE_BYTES {
            break;
        }
    }
    assert!(window_bytes >= WIDE_BYTES, "{window_bytes}");
    for _ in 0..10 {
        window_bytes = fill_window(&mut client, window_bytes);
        assert!(window_bytes <= WINDOW_BYTES + GROWTH_BYTES_MAX);
    }
}
