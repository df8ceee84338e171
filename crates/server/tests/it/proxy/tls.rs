//! Tests of `https` upstream servers: nginx with OpenSSL, with certificates of every kind, shows
//! what it got from us.

use std::path::Path;
use std::process::Command;

use turnpike_testkit::{Folder, Origin, Server, Step};

/// The origin shows the requested name, whether the session was resumed, the subject of the
/// client's certificate, and the number of requests on this connection.
const ORIGIN: &str = r#"
    error_log %FOLDER%/error.log info;
    events { }
    http {
        client_body_temp_path %FOLDER%/bodies;
        proxy_temp_path %FOLDER%/answers;
        access_log off;
        ssl_session_cache shared:s:1m;
        ssl_protocols TLSv1.2 TLSv1.3;
        server {
            listen 127.0.0.1:%PORT% ssl;
            listen 127.0.0.1:%PORT_INTRODUCED% ssl proxy_protocol;
            ssl_certificate %KEYS%/%OWN%.pem;
            ssl_certificate_key %KEYS%/%OWN%.key;
            ssl_client_certificate %KEYS%/ca.pem;
            ssl_verify_client optional;
            location / {
                set $session "name=$ssl_server_name resumed=$ssl_session_reused";
                set $client "client=$ssl_client_verify,$ssl_client_s_dn";
                set $rest "request=$connection_requests protocol=$ssl_protocol";
                set $rest "$rest introduced=$proxy_protocol_addr";
                set $rest "$rest cipher=$ssl_cipher curve=$ssl_curve ";
                return 200 "$session $client $rest";
            }
            location /behind/ { client_max_body_size 0; %MORE% }
            location /known/ {
                if ($ssl_client_verify != SUCCESS) { return 403; }
                return 200 "welcome";
            }
        }
    }"#;

/// Certificates in a folder: `ca` signs `signed` (origin.test) and `client`; `alone` is self-signed
/// and may sign others, as OpenSSL makes them by default; `stranger` is another authority.
fn keys() -> Folder {
    let folder = Folder::create().unwrap();
    let at = folder.path();
    let root = ["-addext", "basicConstraints=critical,CA:TRUE"];
    make(at, "ca", "/CN=Our authority", &root);
    make(at, "stranger", "/CN=Another authority", &root);
    let name = ["-addext", "subjectAltName=DNS:origin.test,IP:127.0.0.1"];
    make(at, "alone", "/CN=origin.test", &name);
    let signed = ["-CA", "ca.pem", "-CAkey", "ca.key"];
    let leaf = ["-addext", "basicConstraints=CA:FALSE"];
    make(
        at,
        "signed",
        "/CN=origin.test",
        &[&name[..], &signed, &leaf].concat(),
    );
    make(at, "client", "/CN=turnpike", &[&signed[..], &leaf].concat());
    folder
}

/// A key and a certificate, by OpenSSL's own tool.
fn make(folder: &Path, file: &str, subject: &str, more: &[&str]) {
    let output = Command::new("openssl")
        .current_dir(folder)
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "3650"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", subject])
        .args([
            "-keyout",
            &format!("{file}.key"),
            "-out",
            &format!("{file}.pem"),
        ])
        .args(more)
        .output()
        .expect("openssl");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

fn origin(keys: &Folder, own: &str) -> Server {
    origin_with(keys, own, "")
}

fn origin_with(keys: &Folder, own: &str, more: &str) -> Server {
    let keys = keys.path().display().to_string();
    let configuration = ORIGIN.replace("%KEYS%", &keys).replace("%OWN%", own);
    let configuration = configuration.replace("%MORE%", more);
    Server::builder("nginx")
        .configuration(&configuration)
        .start()
}

/// A server in front of these ports.
fn server(keys: &Folder, ports: &[u16], directives: &str) -> Server {
    let keys = keys.path().display().to_string();
    let directives = directives.replace("%KEYS%", &keys);
    let mut servers = String::new();
    for (index, port) in ports.iter().enumerate() {
        let backup = if index == 0 { "" } else { "backup" };
        servers.push_str(&format!("server 127.0.0.1:{port} {backup} max_fails=0;"));
    }
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        worker_processes 1;
        events {{ }}
        http {{
            log_format up '$status $upstream_status';
            access_log %FOLDER%/access.log up;
            upstream origin.test {{ {servers} }}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass https://origin.test; {directives} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

const VERIFY: &str = "proxy_ssl_verify on; proxy_ssl_trusted_certificate %KEYS%/";

/// The origin's certificate, directives, and the log message if it is refused.
const VERIFIED: &[(&str, &str, &str)] = &[
    ("signed", "", ""),
    ("alone", "", ""),
    ("signed", "ca.pem;", ""),
    ("alone", "alone.pem;", ""),
    (
        "signed",
        "stranger.pem;",
        "upstream SSL certificate verify error: (20:unable to get local issuer certificate)",
    ),
    (
        "alone",
        "stranger.pem;",
        "upstream SSL certificate verify error: (18:self-signed certificate)",
    ),
    (
        "signed",
        "ca.pem; proxy_ssl_name other.test;",
        "upstream SSL certificate does not match \"other.test\"",
    ),
    (
        "alone",
        "alone.pem; proxy_ssl_name other.test;",
        "upstream SSL certificate does not match \"other.test\"",
    ),
    ("signed", "ca.pem; proxy_ssl_name 127.0.0.1;", ""),
    ("alone", "alone.pem; proxy_ssl_name 127.0.0.1;", ""),
    // A certificate that is trusted itself is no authority for others.
    (
        "signed",
        "alone.pem;",
        "upstream SSL certificate verify error: (20:unable to get local issuer certificate)",
    ),
];

#[test]
fn certificates_are_verified_if_configured() {
    let keys = keys();
    for (own, trusted, refused) in VERIFIED {
        let origin = origin(&keys, own);
        let directives = match *trusted {
            "" => String::new(),
            trusted => format!("{VERIFY}{trusted}"),
        };
        let server = server(&keys, &[origin.port()], &directives);
        let response = server.get("/");
        match *refused {
            "" => assert_eq!(
                response.status,
                200,
                "{own} {trusted}\n{}",
                server.log("error.log")
            ),
            refused => {
                assert_eq!(response.status, 502, "{own} {trusted}");
                let logged = format!("{refused} while SSL handshaking to upstream, client: ");
                server.wait_for_log("error.log", &logged);
            }
        }
    }
}

/// Directives, and the origin's output for the second request.
const SEEN: &[(&str, &str)] = &[
    ("", "name= "),
    ("proxy_ssl_server_name on;", "name=origin.test "),
    (
        "proxy_ssl_server_name on; proxy_ssl_name $arg_name;",
        "name=given.test ",
    ),
    // Connections are kept, with their sessions.
    ("", "resumed=. "),
    ("", "request=2 "),
    // On new connections, sessions are resumed.
    ("proxy_http_version 1.0;", "resumed=r "),
    (
        "proxy_http_version 1.0; proxy_ssl_protocols TLSv1.2;",
        "resumed=r ",
    ),
    (
        "proxy_http_version 1.0; proxy_ssl_session_reuse off;",
        "resumed=. ",
    ),
    ("proxy_ssl_protocols TLSv1.2;", "protocol=TLSv1.2"),
    ("proxy_ssl_protocols TLSv1.3;", "protocol=TLSv1.3"),
    ("", "client=NONE, "),
    (
        "proxy_ssl_certificate %KEYS%/client.pem; proxy_ssl_certificate_key %KEYS%/client.key;",
        "client=SUCCESS,CN=turnpike ",
    ),
    (
        "proxy_ssl_protocols TLSv1.2; proxy_ssl_ciphers ECDHE-ECDSA-CHACHA20-POLY1305;",
        "cipher=ECDHE-ECDSA-CHACHA20-POLY1305 ",
    ),
    (
        "proxy_ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;",
        "cipher=TLS_CHACHA20_POLY1305_SHA256 ",
    ),
    (
        "proxy_ssl_conf_command Groups secp384r1;",
        "curve=secp384r1 ",
    ),
    (
        "proxy_ssl_conf_command MaxProtocol TLSv1.2;",
        "protocol=TLSv1.2",
    ),
    (
        "proxy_ssl_certificate %KEYS%/alone.pem; proxy_ssl_certificate_key %KEYS%/alone.key;
         proxy_ssl_conf_command Certificate %KEYS%/client.pem;
         proxy_ssl_conf_command PrivateKey %KEYS%/client.key;",
        "client=SUCCESS,CN=turnpike ",
    ),
];

#[test]
fn the_origin_gets_the_configured_session() {
    let keys = keys();
    let origin = origin(&keys, "signed");
    for (directives, expected) in SEEN {
        let server = server(&keys, &[origin.port()], directives);
        server.get("/?name=given.test");
        let reply = server.get("/?name=given.test").text();
        assert!(reply.contains(expected), "{directives}: {reply}");
    }
}

#[test]
fn the_proxy_header_precedes_the_handshake() {
    let keys = keys();
    let origin = origin(&keys, "signed");
    let port = origin.port_named("INTRODUCED");
    for version in ["on", "v2"] {
        let server = server(&keys, &[port], &format!("proxy_protocol {version};"));
        for _ in 0..2 {
            let reply = server.get("/").text();
            assert!(reply.contains("request=1 "), "{version}: {reply}");
            assert!(reply.contains("introduced=127.0.0.1"), "{version}: {reply}");
        }
    }
}

#[test]
fn a_required_certificate_that_is_missing_is_reported() {
    let keys = keys();
    let origin = origin(&keys, "signed");
    let own = "proxy_ssl_certificate %KEYS%/client.pem;
               proxy_ssl_certificate_key %KEYS%/client.key;";
    for (directives, status) in [("", 403), (own, 200)] {
        let server = server(&keys, &[origin.port()], directives);
        assert_eq!(server.get("/known/").status, status);
    }
}

#[test]
fn a_handshake_that_fails_goes_on_to_the_next_server() {
    let keys = keys();
    let good = origin(&keys, "signed");
    let stranger = origin(&keys, "alone");
    let broken = |script: Vec<Step>| Origin::start(vec![script]);
    let closes = broken(vec![Step::ReadBytes(1)]);
    let resets = broken(vec![Step::ReadBytes(1), Step::Reset]);
    let babbles = broken(vec![Step::send("HTTP/1.1 400 No\r\n\r\n"), Step::ReadToEnd]);
    let silent = broken(vec![Step::ReadToEnd]);
    let trusted = format!("{VERIFY}ca.pem; proxy_connect_timeout 300ms;");
    let cases = [
        (
            closes.port(),
            "502",
            "peer closed connection in SSL handshake",
        ),
        (
            resets.port(),
            "502",
            "peer closed connection in SSL handshake",
        ),
        (babbles.port(), "502", "SSL_do_handshake() failed"),
        (
            silent.port(),
            "504",
            "upstream timed out (110: Connection timed out)",
        ),
        (
            stranger.port(),
            "502",
            "upstream SSL certificate verify error: (18:",
        ),
    ];
    for (port, status, logged) in cases {
        let server = server(&keys, &[port, good.port()], &trusted);
        // No byte of the request was sent, so any request may go to the next server.
        let mut peer = server.connect();
        let response = peer.round("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
        assert_eq!(
            response.status,
            200,
            "{logged}\n{}",
            server.log("error.log")
        );
        server.wait_for_log("error.log", logged);
        server.wait_for_log("access.log", &format!("200 {status}, 200"));
    }
}

#[test]
fn bodies_go_both_ways_whole() {
    const BYTES: usize = 1 << 20;
    let keys = keys();
    let upload = "0123456789abcdef".repeat(BYTES / 16);
    let behind = Origin::start(vec![vec![
        Step::ReadHead,
        Step::ReadBytes(BYTES),
        Step::send(format!("HTTP/1.0 200 OK\r\n\r\n{upload}")),
    ]]);
    let more = format!("proxy_pass http://127.0.0.1:{};", behind.port());
    let origin = origin_with(&keys, "signed", &more);
    let trusted = format!("{VERIFY}ca.pem; client_max_body_size 0;");
    for buffering in ["on", "off"] {
        let directives = format!("{trusted} proxy_request_buffering {buffering};");
        let server = server(&keys, &[origin.port()], &directives);
        let mut peer = server.connect();
        peer.send(format!(
            "POST /behind/ HTTP/1.1\r\nHost: x\r\nContent-Length: {BYTES}\r\n\r\n"
        ));
        peer.send(&upload);
        assert!(peer.response().body == upload.as_bytes(), "{buffering}");
        let received = behind.received();
        assert!(received[received.len() - 1].ends_with(upload.as_bytes()));
    }
}
