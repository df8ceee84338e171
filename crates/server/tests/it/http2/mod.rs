//! Tests of HTTP/2 with curl, by prior knowledge and over TLS.

mod floods;
mod interim;
mod priorities;
pub(crate) mod trailers;
pub(crate) mod tunnels;
mod upstream;

use std::io::Read as _;
use std::process::Command;

use turnpike_testkit::{Folder, Origin, Peer, Server, Signal, Step};

use crate::support::curl::{curl, large};
use crate::support::tls::{TURNPIKE, big, configured, keys, start};

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            root %FOLDER%/html;
            location /values { return 200 \"$http2 $server_protocol $http_host $http_cookie\"; }
            location /missing { return 404 gone; }
            location /limited { limit_rate 1m; alias %FOLDER%/html/large; }
            location /echo { proxy_pass http://127.0.0.1:%PORT%/body; }
            location /body { proxy_pass http://127.0.0.1:%PORT%/length; }
            location /length { return 200 \"$content_length $http2.\"; }
        }
    }";

#[test]
fn curl_is_answered_over_http2_and_http1_on_one_listener() {
    let large = large();
    let server = Server::builder(TURNPIKE)
        .configuration(CONFIGURATION)
        .file("html/small", "small")
        .file("html/large", large.as_slice())
        .start();
    let host = format!("127.0.0.1:{}", server.port());
    let http2 = "--http2-prior-knowledge";
    let version = "%{http_code} %{http_version}";
    let upload = format!("@{}", server.folder().join("html/large").display());
    let values = format!("h2c HTTP/2.0 {host} a=b");
    let values_before = format!(" HTTP/1.1 {host} ");
    let cases: &[(&str, &[&str], &[u8])] = &[
        ("/small", &[http2], b"small"),
        ("/large", &[http2], &large),
        ("/large", &[http2, "-r", "9-99999"], &large[9..100_000]),
        ("/limited", &[http2], &large),
        ("/values", &[http2, "-b", "a=b"], values.as_bytes()),
        ("/values", &[], values_before.as_bytes()),
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

const SECURE_CONFIGURATION: &str = "
    proxy_cache_path %FOLDER%/cache keys_zone=pages:1m;
    server {
        %SECURE%
        http2 on;
        root %FOLDER%/html;
        location /session { return 200 \"$http2 $ssl_alpn_protocol $scheme $server_protocol\"; }
        location /page { proxy_pass http://127.0.0.1:%PORT_origin%/page; }
        location /upload { proxy_pass http://127.0.0.1:%PORT_origin%/taken; }
        location /cached/ {
            proxy_pass http://127.0.0.1:%PORT_origin%/;
            proxy_cache pages;
            proxy_cache_valid 1m;
        }
        location /long {
            set $long 0123456789abcdefghijklmnopqrstuvwxyz;
            set $long $long$long$long$long$long$long$long$long$long$long$long$long$long$long;
            set $long $long$long$long$long$long$long$long$long$long$long$long$long$long$long;
            add_header X-Long $long;
            add_header X-Long $long;
            add_header X-Long $long;
            return 204;
        }
    }
    server {
        listen 127.0.0.1:%PORT_origin%;
        root %FOLDER%/html;
        location /page { return 200 \"$server_protocol $http_x_own\"; }
        location /taken { return 200 \"$content_length bytes\"; }
    }";

#[test]
fn curl_is_answered_over_tls() {
    let keys = keys();
    let server = start(&keys, SECURE_CONFIGURATION);
    let (version, connects) = ("%{http_code} %{http_version}", "%{num_connects} ");
    let again = format!("https://127.0.0.1:{}/a.txt", server.port());
    let upload = format!("@{}", server.folder().join("html/upload").display());
    server.write("html/upload", &big()[..300_000]);
    let head = ["-I", "-o", "/dev/null", "-w", version];
    let cases: &[(&str, &[&str], &[u8])] = &[
        ("/a.txt", &["-w", version], b"hello200 2"),
        ("/session", &[], b"h2 h2 https HTTP/2.0"),
        ("/page", &["-H", "X-Own: mine"], b"HTTP/1.1 mine"),
        ("/upload", &["--data-binary", &upload], b"300000 bytes"),
        ("/big.bin", &[], &big()),
        ("/cached/big.bin", &[], &big()),
        ("/cached/big.bin", &[], &big()),
        ("/big.bin", &head, b"200 2"),
        ("/none", &["-o", "/dev/null", "-w", version], b"404 2"),
        ("/a.txt", &["-w", connects, &again], b"hello1 hello0 "),
        ("/session", &["--http1.1"], b" http/1.1 https HTTP/1.1"),
    ];
    for (target, more, expected) in cases {
        let printed = secure_curl(&server, target, more);
        assert!(
            printed == *expected,
            "{target} {more:?}: {} bytes, {}",
            printed.len(),
            String::from_utf8_lossy(&printed[..printed.len().min(99)])
        );
    }
    let long = secure_curl(&server, "/long", &["-D", "-"]);
    let field = format!(
        "x-long: {}\r\n",
        "0123456789abcdefghijklmnopqrstuvwxyz".repeat(196)
    );
    assert_eq!(String::from_utf8_lossy(&long).matches(&field).count(), 3);
}

/// The output of curl for a target over TLS.
fn secure_curl(server: &Server, target: &str, more: &[&str]) -> Vec<u8> {
    let address = format!("https://127.0.0.1:{}{target}", server.port());
    let mut command = Command::new("curl");
    command.args(["-sk", "--http2", "--max-time", "20"]);
    command.args(more).arg(address).output().unwrap().stdout
}

/// A request for a path as a stream's only frame, with all fields as literals.
fn request(stream: u8, path: &str) -> Vec<u8> {
    let length = path.len() as u8;
    let block = [&[0x82, 0x86, 4, length][..], path.as_bytes(), b"\x01\x01a"].concat();
    [
        &[0, 0, block.len() as u8, 1, 5, 0, 0, 0, stream][..],
        &block,
    ]
    .concat()
}

/// The preface, SETTINGS, and windows of the connection and the streams that are large enough for
/// all responses.
fn opening() -> Vec<u8> {
    let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff];
    let window = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0];
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(),
        &settings,
        &window,
    ]
    .concat()
}

fn read_until(peer: &Peer, text: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let mut piece = [0; 4096];
        let count = peer.stream().read(&mut piece).unwrap();
        assert!(count > 0, "no {text} in {read:?}");
        read.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn a_connection_lives_through_a_reload_and_is_served_by_the_new_configuration() {
    let keys = keys();
    let text = configured(
        &keys,
        "server { listen 127.0.0.1:%PORT_plain%; http2 on; location / { return 200 first; } }
         server { %SECURE% http2 on; root %FOLDER%/html; limit_rate 1m; }",
    );
    let mut server = Server::builder(TURNPIKE)
        .configuration(&text)
        .file("html/big.bin", big())
        .start();
    let mut peer = Peer::connect(server.port_named("plain"));
    peer.send([opening(), request(1, "/")].concat());
    read_until(&peer, "first");
    std::thread::scope(|scope| {
        let (port, began) = (server.port(), server.folder().join("began"));
        let download = scope.spawn(move || {
            let mut command = Command::new("curl");
            let address = format!("https://127.0.0.1:{port}/big.bin");
            command
                .args(["-sk", "--http2", "-D"])
                .arg(began)
                .arg(address);
            command.output().unwrap().stdout
        });
        turnpike_testkit::wait_for(|| (!server.log("began").is_empty()).then_some(())).unwrap();
        server.write_configuration(&text.replace("first", "second"));
        server.signal(Signal::SIGHUP);
        server.wait_for_log("error.log", "serving with configuration 2");
        peer.send(request(3, "/"));
        read_until(&peer, "second");
        assert!(download.join().unwrap() == big());
    });
}

/// More than the buffers of all sockets on its way.
const AHEAD_BYTES: usize = 24 << 20;

#[test]
fn a_proxied_body_is_read_ahead_of_a_client_that_gives_no_window() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {AHEAD_BYTES}\r\n\r\n");
    for limit in ["", "limit_rate 1k;"] {
        let response = [head.as_bytes(), &vec![b'x'; AHEAD_BYTES]].concat();
        let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(response)]]);
        let text = format!(
            "events {{ }}
            http {{
                server {{
                    listen 127.0.0.1:%PORT%;
                    http2 on;
                    location / {{ proxy_pass http://127.0.0.1:{}; {limit} }}
                }}
            }}",
            origin.port()
        );
        let server = Server::builder(TURNPIKE).configuration(&text).start();
        let mut peer = Peer::connect(server.port());
        // Windows of the size that they have without a word about them.
        let opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        peer.send([opening.as_slice(), &request(1, "/")].concat());
        origin.wait_for_ended(1);
    }
}

#[test]
fn a_client_that_does_not_read_does_not_delay_the_end() {
    let text = "error_log %FOLDER%/error.log info;
        events { }
        http {
            server {
                listen 127.0.0.1:%PORT% sndbuf=32k;
                http2 on;
                root %FOLDER%/html;
                send_timeout 1s;
            }
        }";
    let server = Server::builder(TURNPIKE)
        .configuration(text)
        .file("html/large", vec![b'x'; 8_000_000])
        .start();
    let mut peer = server.connect();
    peer.send([opening(), request(1, "/large")].concat());
    server.wait_for_log("error.log", "client timed out (110: Connection timed out)");
    assert!(server.quit().success());
}

#[test]
fn requests_that_the_end_cuts_short_are_logged() {
    let silent = || vec![Step::ReadHead, Step::ReadToEnd];
    let origin = Origin::start(vec![silent(), silent()]);
    let server = Server::builder(TURNPIKE)
        .configuration(&format!(
            "error_log %FOLDER%/error.log info;
            worker_shutdown_timeout 10ms;
            events {{ }}
            http {{
                log_format short '$status $request.';
                access_log %FOLDER%/access.log short;
                server {{
                    listen 127.0.0.1:%PORT%;
                    http2 on;
                    location / {{ proxy_pass http://127.0.0.1:{}; }}
                }}
            }}",
            origin.port()
        ))
        .start();
    let mut http2 = server.connect();
    http2.send([opening(), request(1, "/a")].concat());
    let mut http1 = server.connect();
    http1.send("GET /b HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    origin.wait_for_connections(2);
    server.signal(Signal::SIGQUIT);
    server.wait_for_log("access.log", "499 GET /a HTTP/2.0.");
    server.wait_for_log("access.log", "499 GET /b HTTP/1.1.");
}

#[test]
fn a_first_line_of_another_protocol_ends_the_connection_without_http1() {
    let server = Server::builder(TURNPIKE)
        .configuration(CONFIGURATION)
        .start();
    // SETTINGS comes first, and then the reason.
    let cases: &[(&str, &[u8])] = &[
        ("INVALID CONNECTION PREFACE\r\n\r\n", b"\0\0\x1e\x04\0"),
        ("PRI * HTTP/2.0\r\n\r\nxxxxxxxx", b"HTTP/1.1 400 "),
        ("GET /values HTTX/1.1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        ("GET /values HTTP/1.0\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 "),
    ];
    for (sent, expected) in cases {
        let mut peer = server.connect();
        peer.send(sent);
        let mut received = Vec::new();
        peer.stream().read_to_end(&mut received).unwrap();
        assert!(received.starts_with(expected), "{sent:?}: {received:?}");
    }
    server.wait_for_log("error.log", "invalid connection preface");
}

/// A line of a configuration, and the warning about it.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    (
        "http2_idle_timeout 3m;",
        "the \"http2_idle_timeout\" directive is obsolete, use the \"keepalive_timeout\" directive \
         instead",
    ),
    (
        "http2_max_concurrent_pushes 10;",
        "the \"http2_max_concurrent_pushes\" directive is obsolete, ignored",
    ),
    (
        "http2_max_field_size 4k;",
        "the \"http2_max_field_size\" directive is obsolete, use the \
         \"large_client_header_buffers\" directive instead",
    ),
    (
        "http2_max_header_size 16k;",
        "the \"http2_max_header_size\" directive is obsolete, use the \
         \"large_client_header_buffers\" directive instead",
    ),
    (
        "http2_max_requests 1000;",
        "the \"http2_max_requests\" directive is obsolete, use the \"keepalive_requests\" \
         directive instead",
    ),
    (
        "http2_recv_timeout 30s;",
        "the \"http2_recv_timeout\" directive is obsolete, use the \"client_header_timeout\" \
         directive instead",
    ),
    (
        "location /a { http2_push /b; }",
        "the \"http2_push\" directive is obsolete, ignored",
    ),
    (
        "http2_push_preload on;",
        "the \"http2_push_preload\" directive is obsolete, ignored",
    ),
    ("http3 on;", ""),
    ("http3_stream_buffer_size 64k;", ""),
];

/// The second server's connections have another limit.
const LIMITED_BY_NAME: &str = "
    server { %SECURE% http2 on; server_name a.test; return 200 $connection_requests; }
    server {
        listen 127.0.0.1:%PORT% ssl;
        http2 on;
        server_name b.test;
        ssl_certificate %KEYS%/rsa.pem;
        ssl_certificate_key %KEYS%/rsa.key;
        keepalive_requests 2;
        location / { return 200 $connection_requests; }
        location /more { keepalive_requests 1; return 200 $connection_requests; }
    }";

#[test]
fn the_server_that_tls_names_limits_the_connection() {
    let keys = keys();
    let server = start(&keys, LIMITED_BY_NAME);
    let port = server.port();
    for (name, path, expected) in [
        ("a.test", "/", "12345"),
        ("b.test", "/", "12121"),
        // As in nginx, a location's limit is not a connection's.
        ("b.test", "/more", "12121"),
    ] {
        let url = format!("https://{name}:{port}{path}?[1-5]");
        let resolve = format!("{name}:{port}:127.0.0.1");
        let mut command = Command::new("curl");
        command.args(["-sk", "--http2", "--max-time", "60", "--resolve", &resolve]);
        let output = command.arg(url).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, expected, "{name}{path}");
    }
}

#[test]
fn directives_without_effect_load_with_a_warning() {
    let folder = Folder::create().unwrap();
    for (line, expected) in WITHOUT_EFFECT {
        let text = format!("events {{ }} http {{ server {{ listen 127.0.0.1:8080; {line} }} }}");
        folder.write("nginx.conf", &text).unwrap();
        let mut command = Command::new(TURNPIKE);
        let command = command.args([
            "-t",
            "-e",
            "stderr",
            "-p",
            folder.name(),
            "-c",
            "nginx.conf",
        ]);
        let output = command.output().unwrap();
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{shown}");
        let warnings = shown.lines().filter_map(|line| line.split_once("[warn] "));
        let warnings: Vec<&str> = warnings.map(|(_, text)| text).collect();
        let place = format!(" in {}/nginx.conf:1", folder.name());
        let expected = match *expected {
            "" => Vec::new(),
            text => vec![format!("{text}{place}")],
        };
        assert_eq!(warnings, expected, "{line}");
    }
}
