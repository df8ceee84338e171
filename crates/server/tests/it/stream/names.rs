//! Servers of `stream` that are chosen by name, and connections that are passed to other addresses
//! of ours; OpenSSL's client and curl judge.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use turnpike_testkit::{Folder, Server};

use crate::support::tls::{TURNPIKE, keys, s_client};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first port has servers by name; the second looks at the hello and passes the connection to
/// one of the others as it is; the third passes it on behind its handshake, the fourth in a circle,
/// and the fifth to nobody.
const CONFIGURATION: &str = r#"
worker_processes 2;
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    ssl_certificate %KEYS%/rsa.pem;
    ssl_certificate_key %KEYS%/rsa.key;
    server {
        listen 127.0.0.1:%PORT_6%;
        listen 127.0.0.1:%PORT_7% ssl;
        location / { return 200 "http $scheme $remote_addr $request_uri;"; }
    }
}
stream {
    log_format brief '$status $server_name';
    access_log %FOLDER%/stream.log brief;
    server_names_hash_bucket_size 64;
    server_names_hash_max_size 512;
    server {
        listen 127.0.0.1:%PORT%;
        server_name first.test;
        ssl_certificate %KEYS%/rsa.pem;
        ssl_certificate_key %KEYS%/rsa.key;
        ssl_protocols TLSv1.2;
        return "$server_name by $ssl_protocol for $ssl_server_name.";
    }
    server {
        listen 127.0.0.1:%PORT% ssl default_server;
        ssl_certificate %KEYS%/ec.pem;
        ssl_certificate_key %KEYS%/ec.key;
        return "default by $ssl_protocol for $ssl_server_name.";
    }
    server { listen 127.0.0.1:%PORT%; server_name *.wild.test; return "$server_name."; }
    server { listen 127.0.0.1:%PORT%; server_name ~^(?<who>\w+)\.any\.test$; return "$who."; }
    server { listen 127.0.0.1:%PORT%; server_name no.test; ssl_reject_handshake on; return no; }
    server {
        listen 127.0.0.1:%PORT_2%;
        ssl_preread on;
        pass 127.0.0.1:%PORT_6%;
    }
    server { listen 127.0.0.1:%PORT_2%; server_name http.test; pass 127.0.0.1:%PORT_7%; }
    server { listen 127.0.0.1:%PORT_2%; server_name *.test; pass 127.0.0.1:%PORT%; }
    server {
        listen 127.0.0.1:%PORT_3% ssl;
        ssl_certificate %KEYS%/ec.pem;
        ssl_certificate_key %KEYS%/ec.key;
        pass $to;
    }
    map $remote_addr $to { default 127.0.0.1:%PORT_6%; }
    server { listen 127.0.0.1:%PORT_4%; pass 127.0.0.1:%PORT_4%; }
    server { listen 127.0.0.1:%PORT_5%; pass 127.0.0.1:1; }
}"#;

fn start(keys: &Folder) -> Server {
    let folder = keys.path().display().to_string();
    Server::builder(TURNPIKE)
        .configuration(&CONFIGURATION.replace("%KEYS%", &folder))
        .start()
}

/// What curl gets of a port, by that name.
fn curl(scheme: &str, name: &str, port: u16) -> String {
    let mut command = Command::new("curl");
    command.args(["-sk", "--http1.1", "--max-time", "60", "--connect-to"]);
    command.arg(format!("::127.0.0.1:{port}"));
    let output = command
        .arg(format!("{scheme}://{name}/a"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What comes of these bytes, to the end.
fn answer(port: u16, bytes: &[u8]) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(bytes).unwrap();
    let mut all = Vec::new();
    // A connection that is reset has said all.
    let _ = client.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn the_name_that_a_client_asks_for_chooses_the_server() {
    let keys = keys();
    let server = start(&keys);
    let cases: [(&[&str], &str); 7] = [
        (&["-noservername"], "default by TLSv1.3 for ."),
        (
            &["-servername", "other.test"],
            "default by TLSv1.3 for other.test.",
        ),
        (
            &["-servername", "FIRST.test"],
            "first.test by TLSv1.2 for first.test.",
        ),
        (
            &["-servername", "first.test."],
            "first.test by TLSv1.2 for first.test..",
        ),
        (&["-servername", "a.b.wild.test"], "*.wild.test."),
        (&["-servername", "joe.any.test"], "joe."),
        (&["-servername", "no.test"], "unrecognized name"),
    ];
    for (arguments, expected) in cases {
        let said = s_client(&server, "", arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_connection_is_passed_to_another_address_of_ours() {
    let keys = keys();
    let server = start(&keys);
    let port = |name: &str| server.port_named(name);
    let plain = answer(port("2"), b"GET /a HTTP/1.0\r\n\r\n");
    assert!(plain.ends_with("http http 127.0.0.1 /a;"), "{plain}");
    let cases = [
        ("http", "http.test", "2", "http http 127.0.0.1 /a;"),
        ("https", "http.test", "2", "http https 127.0.0.1 /a;"),
        ("https", "none.test", "3", "http https 127.0.0.1 /a;"),
        ("http", "none.test", "4", ""),
        ("http", "none.test", "5", ""),
    ];
    for (scheme, name, at, expected) in cases {
        let said = curl(scheme, name, port(at));
        assert_eq!(said, expected, "{scheme}://{name} at {at}");
    }
    let log = server.folder().join("error.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("stream pass cycle"), "{log}");
    assert!(log.contains("port not found for \"127.0.0.1:1\""), "{log}");
}

#[test]
fn a_hello_that_was_read_before_the_connection_was_passed_is_not_lost() {
    let keys = keys();
    let server = start(&keys);
    let at = format!("127.0.0.1:{}", server.port_named("2"));
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &at, "-servername", "joe.any.test"])
        .args(["-ign_eof"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("joe."), "{said}");
}

#[test]
fn a_client_has_one_preread_timeout_for_all_that_is_looked_at() {
    let text = "error_log %FOLDER%/error.log info;
        events { }
        stream {
            server {
                listen 127.0.0.1:%PORT%;
                ssl_preread on;
                preread_timeout 1s;
                return $ssl_preread_server_name;
            }
        }";
    let server = Server::builder(TURNPIKE).configuration(text).start();
    let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    // A hello of 240 bytes, of which one comes every 100 ms.
    client
        .write_all(&[22, 3, 1, 0, 240, 1, 0, 0, 236, 3, 3])
        .unwrap();
    let is_cut = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        // The connection may be closed already.
        let _ = client.write_all(&[0]);
        server.log("error.log").contains("client timed out")
    });
    assert!(is_cut);
}
