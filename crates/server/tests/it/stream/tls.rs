//! Tests of TLS in `stream`: with clients, with servers, and both at once, with OpenSSL's client.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use turnpike_testkit::{Folder, Server};

use crate::support::tls::{TURNPIKE, big, keys, s_client};

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

/// The first port tells a server behind it what the client's session is, in the header's own bytes;
/// the second tells the third, which shows what it reads.
const INTRODUCED: &str = r#"
error_log %FOLDER%/error.log info;
events { }
stream {
    ssl_certificate %KEYS%/ec.pem;
    ssl_certificate_key %KEYS%/ec.key;
    ssl_alpn first second;
    ssl_verify_client optional_no_ca;
    ssl_client_certificate %KEYS%/rsa.pem;
    proxy_protocol v2;
    proxy_protocol_v2_tlv unique_id id-$ssl_server_name;
    proxy_protocol_v2_tlv 0xe1 "";
    server { listen 127.0.0.1:%PORT% ssl; proxy_pass 127.0.0.1:%ORIGIN%; }
    server {
        listen 127.0.0.1:%PORT_2% ssl;
        proxy_pass 127.0.0.1:%PORT_3%;
        proxy_protocol_v2_tlv authority replaced;
        proxy_protocol_v2_tlv 0xe0 $ssl_client_verify;
    }
    server {
        listen 127.0.0.1:%PORT_3% proxy_protocol;
        return "$proxy_protocol_tlv_authority|$proxy_protocol_tlv_alpn|\
$proxy_protocol_tlv_unique_id|$proxy_protocol_tlv_0xe0|$proxy_protocol_tlv_ssl_version|\
$proxy_protocol_tlv_ssl_cipher|$proxy_protocol_tlv_ssl_cn|$proxy_protocol_tlv_ssl_verify";
    }
    server {
        listen 127.0.0.1:%PORT_4% ssl;
        proxy_pass 127.0.0.1:%PORT_3%;
        proxy_protocol_v2_tlv unique_id 0123456789abcdef0123456789abcdef0123456789abcdef0123456789\
abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0;
    }
}"#;

fn introducing(keys: &Folder, origin: u16) -> Server {
    let text = INTRODUCED
        .replace("\\\n", "")
        .replace("%KEYS%", &keys.path().display().to_string())
        .replace("%ORIGIN%", &origin.to_string());
    Server::builder(TURNPIKE).configuration(&text).start()
}

#[test]
fn servers_are_told_of_the_clients_session() {
    let keys = keys();
    let server = introducing(&keys, 1);
    let told = |port: &str, more: &[&str]| {
        let at = format!("127.0.0.1:{}", server.port_named(port));
        let mut client = Command::new("openssl");
        client.current_dir(keys.path());
        client.args(["s_client", "-connect", &at, "-ign_eof", "-quiet"]);
        let output = client.args(more).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let named = ["-servername", "a.test"];
    let suite = "TLSv1.3|TLS_AES_256_GCM_SHA384";
    // The additions at this level stand in place of those around it.
    let none = told("2", &[&named[..], &["-alpn", "second"]].concat());
    assert_eq!(none, format!("replaced|second||NONE|{suite}||1"));
    let own = ["-cert", "rsa.pem", "-key", "rsa.key"];
    let trusted = told("2", &[&named[..], &own].concat());
    assert_eq!(trusted, format!("replaced|||SUCCESS|{suite}|b.test|0"));
    let strange = ["-cert", "ec.pem", "-key", "ec.key", "-tls1_2"];
    let strange = told("2", &strange);
    let old = "TLSv1.2|ECDHE-ECDSA-AES256-GCM-SHA384";
    let verdict = "FAILED:self-signed certificate";
    assert_eq!(strange, format!("replaced|||{verdict}|{old}|a.test|18"));
    let long = told("4", &named);
    assert_eq!(long, format!("a.test||||{suite}||1"));
    server.wait_for_log(
        "error.log",
        "unique ID of a PROXY protocol header is longer",
    );
}

#[test]
fn the_header_has_these_bytes() {
    let keys = keys();
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = introducing(&keys, origin.local_addr().unwrap().port());
    let client = thread::spawn(move || {
        s_client(&server, "", &["-servername", "a.test", "-alpn", "first"]);
    });
    let (mut peer, _) = origin.accept().unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut header = vec![0; 16];
    peer.read_exact(&mut header).unwrap();
    let behind = usize::from(u16::from_be_bytes([header[14], header[15]]));
    let mut rest = vec![0; behind];
    peer.read_exact(&mut rest).unwrap();
    drop(peer);
    client.join().unwrap();
    assert_eq!(&header[..14], b"\r\n\r\n\0\r\nQUIT\n\x21\x11");
    // Two addresses with ports; the checksum at the end.
    let expected = [
        &b"\x02\0\x06a.test\x01\0\x05first\x05\0\x09id-a.test"[..],
        b"\x20\0\x28\x01\0\0\0\x01\x21\0\x07TLSv1.3\x23\0\x16TLS_AES_256_GCM_SHA384",
        b"\x03\0\x04",
    ]
    .concat();
    let tlvs = &rest[12..behind - 4];
    assert_eq!(tlvs, expected, "{}", String::from_utf8_lossy(tlvs));
}
