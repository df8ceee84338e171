//! Tests of HTTP/3 with aioquic, a client of other authors.

mod bad_input;
mod messages;
mod servers;
mod survival;

use turnpike_testkit::{Builder, Folder, Origin, Server, Step};

use crate::support::http3::{Client, has_client};
use crate::support::tls::{self, TURNPIKE, big, configured, keys};

/// Eight megabytes each: more packets than may be taken for a few bytes too small, each.
const DOWNLOADS_OF_8: usize = 5;

/// A server's first directives.
const QUIC: &str = "listen 127.0.0.1:%PORT% quic reuseport;
    listen 127.0.0.1:%PORT% ssl;
    ssl_certificate %KEYS%/ec.pem;
    ssl_certificate_key %KEYS%/ec.key;";

/// The configuration of such a server.
fn configuration(keys: &Folder, http: &str) -> String {
    configured(keys, &http.replace("%QUIC%", QUIC))
}

/// A server with these blocks at the http level, `%QUIC%` among them, which begins a server that
/// has HTTP/3 too.
fn start(keys: &Folder, http: &str) -> Server {
    builder(keys, http).start()
}

/// The same, before it is started.
fn builder(keys: &Folder, http: &str) -> Builder {
    Server::builder(TURNPIKE)
        .configuration(&configuration(keys, http))
        .file("html/a.txt", "hello")
        .file("html/big.bin", big())
}

const SERVED: &str = "
    log_format seen '$server_protocol $status $request_length $body_bytes_sent $http3';
    client_body_temp_path %FOLDER%/body;
    proxy_temp_path %FOLDER%/proxy;
    server {
        %QUIC%
        root %FOLDER%/html;
        client_max_body_size 9m;
        access_log %FOLDER%/seen.log seen;
        location /values {
            return 200 \"$server_protocol|$http3|$scheme|$ssl_protocol|$ssl_server_name|\
$ssl_alpn_protocol|$remote_addr|$server_addr|$http_host|$http_x_own\";
        }
        location /fingerprint {
            return 200 $ssl_ja4;
        }
        location /proxied/ { proxy_pass http://127.0.0.1:%PORT_origin%/; }
        location /limited { limit_rate 2m; alias %FOLDER%/html/big.bin; }
        location /empty { return 200; }
        location /moved { return 301 /a.txt; }
    }
    server {
        listen 127.0.0.1:%PORT_origin%;
        client_max_body_size 9m;
        client_body_temp_path %FOLDER%/body;
        root %FOLDER%/html;
        location /length { proxy_pass http://127.0.0.1:%PORT_origin%/taken; }
        location /taken { return 200 \"$request_method $content_length\"; }
    }";

#[test]
fn requests_are_answered() {
    if !has_client("requests_are_answered") {
        return;
    }
    let keys = keys();
    let server = start(&keys, SERVED);
    let big = hash(&big());
    let values = "200 66 HTTP/3.0|h3|https|TLSv1.3|a.test|h3|127.0.0.1|127.0.0.1|a.test|own";
    let mut client = Client::start(&server, &["--field", "x-own=own"]);
    let cases = [
        ("GET /a.txt", "200 5 hello".to_owned()),
        ("GET /values", values.to_owned()),
        ("GET /big.bin", format!("200 1000000 {big}")),
        ("GET /proxied/big.bin", format!("200 1000000 {big}")),
        ("GET /limited", format!("200 1000000 {big}")),
        ("POST /proxied/length 0", "200 6 POST 0".to_owned()),
        ("POST /proxied/length 1", "200 6 POST 1".to_owned()),
        (
            "POST /proxied/length 3000000",
            "200 12 POST 3000000".to_owned(),
        ),
        ("PUT /proxied/taken 700000", "200 10 PUT 700000".to_owned()),
        ("HEAD /empty", "200 0 ".to_owned()),
        ("many 100 /a.txt", "100 200 5 hello".to_owned()),
        ("many 30 /proxied/a.txt", "30 200 5 hello".to_owned()),
        ("many 8 /big.bin", format!("8 200 1000000 {big}")),
    ];
    for (command, expected) in cases {
        assert_eq!(
            client.ask(command).trim_end(),
            expected.trim_end(),
            "{command}"
        );
    }
    for command in ["GET /none", "GET /moved", "POST /a.txt 5"] {
        let status = match command {
            "GET /none" => "404",
            "GET /moved" => "301",
            _ => "405",
        };
        let line = client.ask(command);
        assert!(line.starts_with(status), "{command}: {line}");
    }
    let fingerprint = client.ask("GET /fingerprint");
    assert!(fingerprint.starts_with("200 36 q13d"), "{fingerprint}");
    client.end();
    server.wait_for_log("seen.log", "HTTP/3.0 405");
    let log = server.log("seen.log");
    assert!(
        log.contains("HTTP/3.0 200 ") && log.contains(" 1000000 h3"),
        "{log}"
    );
}

/// SHA-256 in hexadecimal, as the client prints it.
fn hash(bytes: &[u8]) -> String {
    let folder = Folder::create().unwrap();
    folder.write("bytes", bytes).unwrap();
    let mut command = std::process::Command::new("sha256sum");
    let output = command.arg(folder.path().join("bytes")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn cancelled_downloads_leave_the_others_alone() {
    if !has_client("cancelled_downloads_leave_the_others_alone") {
        return;
    }
    let keys = keys();
    let server = start(&keys, SERVED);
    let mut client = Client::start(&server, &[]);
    for path in ["/big.bin", "/proxied/big.bin"] {
        assert_eq!(client.ask(&format!("cancel 3 {path}")), "cancelled");
        let answered = client.ask("GET /big.bin");
        assert!(answered.starts_with("200 1000000 "), "{path}: {answered}");
    }
}

#[test]
fn clients_prove_their_addresses_once() {
    if !has_client("clients_prove_their_addresses_once") {
        return;
    }
    let keys = keys();
    let server = start(&keys, &SERVED.replace("%QUIC%", "%QUIC% quic_retry on;"));
    let token = keys.path().join("token");
    let kept = ["--token", token.to_str().unwrap()];
    // The first has no token, the second that of the first, and the third one that was used.
    for (number, retried) in ["True", "False", "True"].into_iter().enumerate() {
        let shown = (number > 0).then(|| std::fs::read(&token).unwrap());
        let mut client = Client::start(&server, &kept);
        assert_eq!(client.ask("GET /a.txt").trim_end(), "200 5 hello");
        assert_eq!(client.ask("retried"), retried, "{number}");
        client.end();
        if let Some(shown) = shown {
            std::fs::write(&token, shown).unwrap();
        }
    }
}

/// Browsers have connection ids of no bytes, so the packets to them carry more of the answers.
#[test]
fn clients_without_connection_ids_download_much() {
    if !has_client("clients_without_connection_ids_download_much") {
        return;
    }
    let keys = keys();
    let server = start(&keys, SERVED);
    let mut client = Client::start(&server, &["--connection-id-bytes", "0"]);
    let expected = format!("8 200 1000000 {}", hash(&big()));
    for _ in 0..DOWNLOADS_OF_8 {
        assert_eq!(client.ask("many 8 /big.bin").trim_end(), expected);
    }
}

#[test]
fn many_clients_are_served_at_once() {
    if !has_client("many_clients_are_served_at_once") {
        return;
    }
    let keys = keys();
    let server = start(&keys, SERVED);
    let clients: Vec<_> = (0..8).map(|_| Client::start(&server, &[])).collect();
    for mut client in clients {
        assert_eq!(client.ask("many 20 /a.txt"), "20 200 5 hello");
        assert_eq!(client.ask("GET /proxied/a.txt").trim_end(), "200 5 hello");
    }
}

/// What listens for QUIC says nothing of TCP, and needs TLS 1.3. The messages are nginx's.
const REFUSED: &[(&str, &str)] = &[
    (
        "listen 127.0.0.1:1 quic ssl;",
        "\"listen\" directive \"ssl\" parameter is incompatible with \"quic\" in @",
    ),
    (
        "listen 127.0.0.1:1 http2 quic;",
        "\"listen\" directive \"http2\" parameter is incompatible with \"quic\" in @",
    ),
    (
        "listen 127.0.0.1:1 quic proxy_protocol;",
        "\"listen\" directive \"proxy_protocol\" parameter is incompatible with \"quic\" in @",
    ),
    (
        "listen 127.0.0.1:1 quic so_keepalive=on;",
        "\"listen\" directive \"so_keepalive\" parameter is incompatible with \"quic\" in @",
    ),
    (
        "listen 127.0.0.1:1 quic fastopen=3;",
        "\"listen\" directive \"fastopen\" parameter is incompatible with \"quic\" in @",
    ),
    (
        "listen 127.0.0.1:1 quic; quic_active_connection_id_limit 1;",
        "value must be equal to or greater than 2 in @",
    ),
    (
        "listen 127.0.0.1:1 quic; quic_host_key a; quic_host_key b; quic_host_key c;",
        "\"quic_host_key\" is given more than twice: the first file has the secret, and the \
         second one the secret before it in @",
    ),
    (
        "listen 127.0.0.1:1 quic; http3_hq on;",
        "\"http3_hq on\" is not supported yet; remove the line: clients use HTTP/3 in @",
    ),
    (
        "listen unix:s quic;",
        "\"quic\" is not supported for unix domain sockets in @",
    ),
    (
        "listen 127.0.0.1:1 quic;",
        "no \"ssl_certificate\" is defined for the \"listen ... quic\" directive in @",
    ),
    (
        "listen 127.0.0.1:1 quic; ssl_protocols TLSv1.2; ssl_certificate %KEYS%/ec.pem;
         ssl_certificate_key %KEYS%/ec.key;",
        "\"ssl_protocols\" must enable TLSv1.3 for the \"listen ... quic\" directive in @",
    ),
];

const ALTERNATIVES: &str = "
    alt_svc auto;
    server { %QUIC% location /off { alt_svc off; return 200; } location / { return 200; } }
    server { listen 127.0.0.1:%PORT_tcp%; location / { return 404; } }";

#[test]
fn clients_of_tcp_are_told_of_http3() {
    let keys = keys();
    let server = start(&keys, ALTERNATIVES);
    let head = |target| tls::curl(&server, "a.test", target, &["-i"]).to_lowercase();
    let told = format!("\nalt-svc: h3=\":{}\"; ma=86400\r\n", server.port());
    assert!(head("/").contains(&told), "{}", head("/"));
    assert!(!head("/off").contains("alt-svc"), "{}", head("/off"));
    let other = format!("http://127.0.0.1:{}/", server.port_named("tcp"));
    let output = std::process::Command::new("curl")
        .args(["-si", &other])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\nAlt-Svc: clear\r\n"), "{text}");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let keys = keys();
    let path = keys.path().display().to_string();
    for (lines, expected) in REFUSED {
        let lines = lines.replace("%KEYS%", &path);
        let text = format!("events {{ }} http {{ server {{ {lines} }} }}");
        keys.write("nginx.conf", text).unwrap();
        let output = crate::support::turnpike(&keys.arguments(&["-t"]));
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = expected.replace('@', &format!("{path}/nginx.conf:"));
        assert!(shown.contains(&expected), "{lines}: {shown}");
    }
}

const HINTED: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";

/// Stale at once, so that the next request has to ask the origin.
const LINKED: &str = "HTTP/1.1 200 OK\r\nX-Accel-Expires: @1\r\nLink: </a.css>; rel=preload\r\n\
    Content-Length: 3\r\n\r\nold";

/// Hints of an origin, and those that a cache learned, reach clients before the response.
#[test]
fn interim_responses_reach_clients() {
    if !has_client("interim_responses_reach_clients") {
        return;
    }
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let hinting = Origin::start(vec![
        vec![
            Step::ReadHead,
            Step::send(HINTED),
            Step::send(last)
        ];
        2
    ]);
    let linking = [LINKED, last].map(|answer| vec![Step::ReadHead, Step::send(answer)]);
    let linking = Origin::start(linking.to_vec());
    let keys = keys();
    let server = start(
        &keys,
        &format!(
            "proxy_temp_path %FOLDER%/proxy;
            proxy_cache_path m keys_zone=m:1m memory;
            proxy_http_version 1.0;
            server {{
                %QUIC%
                early_hints $http_hints;
                location /origin {{ proxy_pass http://127.0.0.1:{}; }}
                location /cache {{
                    proxy_cache m;
                    proxy_cache_early_hints on;
                    proxy_pass http://127.0.0.1:{};
                }}
            }}",
            hinting.port(),
            linking.port()
        ),
    );
    let fields = ["--field", "sec-fetch-mode=navigate", "--field", "hints=1"];
    let mut client = Client::start(&server, &fields);
    for (command, expected) in [
        ("GET /origin", "103 200 2 ok"),
        ("GET /cache", "200 3 old"),
        ("GET /cache", "103 200 2 ok"),
    ] {
        assert_eq!(client.ask(command), expected, "{command}");
    }
    client.end();
    let mut client = Client::start(&server, &[]);
    assert_eq!(
        client.ask("GET /origin"),
        "200 2 ok",
        "nobody asked for hints"
    );
    client.end();
}
