//! Tests of TLS in `stream`: with clients, with servers, and both at once, with OpenSSL's client.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use turnpike_testkit::{Folder, Server};

#[path = "support/tls.rs"]
mod tls_support;
use tls_support::{TURNPIKE, big, keys, s_client};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first port shows the session's parameters, the second requires certificates, the third
/// passes by TLS to the first, and the fourth by TLS to the fifth, which passes plain bytes to
/// HTTP.
const CONFIGURATION: &str = r#"
worker_processes 2;
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    server { listen 127.0.0.1:%PORT_6%; root %FOLDER%/html; client_max_body_size 4m; }
}
stream {
    log_format brief '$status $ssl_server_name $ssl_client_verify';
    access_log %FOLDER%/stream.log brief;
    ssl_certificate %KEYS%/ec.pem;
    ssl_certificate_key %KEYS%/ec.key;
    ssl_alpn first second;
    server {
        listen 127.0.0.1:%PORT% ssl;
        return "$ssl_protocol $ssl_cipher $ssl_server_name:$ssl_alpn_protocol:";
    }
    server {
        listen 127.0.0.1:%PORT_2% ssl;
        ssl_verify_client on;
        ssl_client_certificate %KEYS%/rsa.pem;
        return "$ssl_client_verify $ssl_client_s_dn";
    }
    server {
        listen 127.0.0.1:%PORT_3%;
        proxy_pass 127.0.0.1:%PORT%;
        proxy_ssl on;
        proxy_ssl_server_name on;
        proxy_ssl_name passed.a.test;
        proxy_ssl_verify on;
        proxy_ssl_trusted_certificate %KEYS%/ec.pem;
        proxy_ssl_alpn $none second;
    }
    server {
        listen 127.0.0.1:%PORT_4%;
        proxy_pass 127.0.0.1:%PORT_5%;
        proxy_ssl on;
    }
    server {
        listen 127.0.0.1:%PORT_5% ssl;
        proxy_pass 127.0.0.1:%PORT_6%;
    }
    server {
        listen 127.0.0.1:%PORT_7% ssl;
        ssl_handshake_timeout 100ms;
        return late;
    }
    map $remote_addr $none { default ""; }
}"#;

fn start(keys: &Folder) -> Server {
    let folder = keys.path().display().to_string();
    Server::builder(TURNPIKE)
        .configuration(&CONFIGURATION.replace("%KEYS%", &folder))
        .file("html/big.bin", big())
        .start()
}

fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

/// The bytes of the answer, to the end.
fn answer(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut client = connect(port);
    client.write_all(bytes).unwrap();
    let mut all = Vec::new();
    // A reset ends the answer too.
    let _ = client.read_to_end(&mut all);
    all
}

#[test]
fn sessions_are_secured_towards_clients_and_servers() {
    let keys = keys();
    let server = start(&keys);
    let output = s_client(
        &server,
        "",
        &["-servername", "A.test", "-alpn", "none,second"],
    );
    assert!(
        output.contains("TLSv1.3 TLS_AES_256_GCM_SHA384 a.test:second:"),
        "{output}"
    );
    let refused = s_client(&server, "", &["-alpn", "other"]);
    assert!(refused.contains("no application protocol"), "{refused}");
    let passed = String::from_utf8(answer(server.port_named("3"), b"")).unwrap();
    assert_eq!(
        passed,
        "TLSv1.3 TLS_AES_256_GCM_SHA384 passed.a.test:second:"
    );
    // Plain bytes, and a cut ClientHello, on a TLS port.
    let plain = answer(server.port(), b"GET / HTTP/1.0\r\n\r\n");
    assert!(!plain.starts_with(b"TLS"), "{plain:?}");
    drop(connect(server.port()).write(&[22, 3, 1, 2, 0, 1]));
    // A silent client is given up after the time-out.
    assert_eq!(answer(server.port_named("7"), b""), b"");
    let late = "client timed out (110: Connection timed out) while SSL handshaking";
    server.wait_for_log("error.log", late);
}

#[test]
fn clients_without_a_good_certificate_are_closed() {
    let keys = keys();
    let server = start(&keys);
    let at = format!("127.0.0.1:{}", server.port_named("2"));
    let variables = |more: &[&str]| {
        let folder = keys.path();
        let arguments = [&["s_client", "-connect", &at, "-ign_eof", "-quiet"], more].concat();
        let mut client = Command::new("openssl");
        let client = client.current_dir(folder).args(arguments);
        let output = client.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = ["-cert", "rsa.pem", "-key", "rsa.key"];
    assert_eq!(variables(&shown), "SUCCESS CN=b.test");
    assert_eq!(variables(&["-cert", "ec.pem", "-key", "ec.key"]), "");
    assert_eq!(variables(&[]), "");
    server.wait_for_log("stream.log", "NONE");
    assert_eq!(
        server.log("stream.log"),
        "200 - SUCCESS\n500 - FAILED:self-signed certificate\n500 - NONE\n"
    );
    for why in [
        "client SSL certificate verify error: (18:self-signed certificate) while SSL handshaking",
        "client sent no required SSL certificate while SSL handshaking",
    ] {
        assert!(server.log("error.log").contains(why), "{why}");
    }
}

#[test]
fn large_bodies_pass_by_tls_both_ways() {
    let keys = keys();
    let server = start(&keys);
    let request = "GET /big.bin HTTP/1.0\r\nHost: a\r\n\r\n";
    let clients = (0..4).map(|_| {
        let port = server.port_named("4");
        thread::spawn(move || {
            let all = answer(port, request.as_bytes());
            let body = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            assert!(all[body..] == big(), "{} bytes", all.len() - body);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().unwrap();
    }
}
