//! Tests of TLS files: passwords from a FIFO, certificates in the configuration itself, and files
//! that are replaced while the server runs.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::stat::Mode;
use turnpike_testkit::wait_for;

#[path = "support/tls.rs"]
mod tls_support;
use tls_support::{curl, keys, start};

/// The second port requests a certificate, and the first port's certificate is accepted there.
const LOCKED: &str = r#"
    ssl_password_file %KEYS%/fifo;
    server {
        listen 127.0.0.1:%PORT% ssl;
        ssl_certificate %KEYS%/ec.pem;
        ssl_certificate_key %KEYS%/locked.key;
        location / {
            proxy_pass https://127.0.0.1:%PORT_B%;
            proxy_ssl_certificate "data:CERTIFICATE";
            proxy_ssl_certificate_key %KEYS%/old_locked.key;
            proxy_ssl_password_file %KEYS%/fifo;
        }
    }
    server {
        listen 127.0.0.1:%PORT_B% ssl;
        ssl_certificate "data:CERTIFICATE";
        ssl_certificate_key %KEYS%/old_locked.key;
        ssl_verify_client optional_no_ca;
        location / { return 200 "$ssl_client_s_dn"; }
    }"#;

#[test]
fn passwords_come_through_a_fifo_and_certificates_from_the_configuration() {
    let keys = keys();
    let fifo = keys.path().join("fifo");
    nix::unistd::mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    // Two files are read with the first one's writer; the third uses the same file.
    let writer = thread::spawn(move || fs::write(fifo, "wrong\r\nsecret\n").unwrap());
    let certificate = fs::read_to_string(keys.path().join("rsa.pem")).unwrap();
    let server = start(&keys, &LOCKED.replace("CERTIFICATE", &certificate));
    writer.join().unwrap();
    assert_eq!(curl(&server, "a.test", "/", &[]), "CN=b.test");
}

#[test]
fn a_fifo_that_nobody_writes_is_given_up() {
    let keys = keys();
    let fifo = keys.path().join("fifo");
    nix::unistd::mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    let configuration = keys.path().join("test.conf");
    let text = "events {} http { server {
        listen 127.0.0.1:1 ssl;
        ssl_certificate ec.pem; ssl_certificate_key locked.key; ssl_password_file fifo;
    } }";
    fs::write(&configuration, text).unwrap();
    let mut command = Command::new(tls_support::TURNPIKE);
    let command = command
        .args(["-t", "-e", "stderr", "-c"])
        .arg(&configuration);
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{message}");
    assert!(message.contains("fifo\" failed (timed out)"), "{message}");
}

/// The subject of the server's certificate; `None` if the handshake failed.
fn shown(port: u16) -> Option<String> {
    let at = format!("127.0.0.1:{port}");
    let mut client = Command::new("openssl");
    let client = client.args(["s_client", "-connect", &at]);
    let output = client.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("subject="))?;
    Some(line.to_owned())
}

#[test]
fn a_certificate_that_is_replaced_is_shown_and_a_broken_one_is_not() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% location / { return 200 here; } }");
    let port = server.port();
    let put = |from: &str, to: &str| {
        let (from, to) = (keys.path().join(from), keys.path().join(to));
        let new = to.with_extension("new");
        fs::copy(from, &new).unwrap();
        fs::rename(new, to).unwrap();
    };
    assert_eq!(shown(port).as_deref(), Some("subject=CN = a.test"));
    // Handshakes continue all the time, and all succeed.
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(shown(port).is_some(), "a handshake failed");
            }
        });
        // One after the other: for a short time they do not match.
        put("wild.pem", "ec.pem");
        server.wait_for_log("error.log", "key values mismatch");
        put("wild.key", "ec.key");
        let new = wait_for(|| shown(port).filter(|subject| subject.contains("w.test")));
        assert!(new.is_some(), "{}", server.log("error.log"));
        put("text.pem", "ec.pem");
        server.wait_for_log("error.log", "no certificate in it");
        assert_eq!(shown(port).as_deref(), Some("subject=CN = w.test"));
        fs::remove_file(keys.path().join("ec.key")).unwrap();
        server.wait_for_log("error.log", "ec.key\" is gone: what was read of it stays");
        assert_eq!(shown(port).as_deref(), Some("subject=CN = w.test"));
        is_done.store(true, Ordering::Relaxed);
        clients.join().unwrap();
    });
    assert_eq!(curl(&server, "w.test", "/", &[]), "here");
}
