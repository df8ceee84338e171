//! Tests of TLS files: passwords from a FIFO, certificates in the configuration itself, and files
//! that are replaced while the server runs.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use nix::libc::SIGINT;
use nix::sys::stat::Mode;
use serde_json::Value;
use turnpike_lane::sys::signal;
use turnpike_testkit::{Folder, Server, wait_for};

use crate::support::tls;
use crate::support::tls::{curl, keys, s_client, start};

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
    let mut command = Command::new(tls::TURNPIKE);
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

/// `turnpike load` with a handshake for each request, until it is stopped.
struct Handshakes {
    name: &'static str,
    child: Child,
    report: PathBuf,
}

impl Handshakes {
    fn start(server: &Server, folder: &Folder, name: &'static str, options: &[&str]) -> Handshakes {
        let report = folder.path().join(format!("{name}.json"));
        let mut command = Command::new(tls::TURNPIKE);
        let command = command
            .args(["load", "--insecure", "--threads", "1", "--quiet"])
            .args(["--connections", "4", "--connreqs", "1", "--rate", "200"])
            .args(["--duration", "3600s", "--timeout", "300s"])
            .arg(format!("--json={}", report.display()))
            .args(options)
            .arg(format!("https://127.0.0.1:{}/", server.port()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Handshakes {
            name,
            child: command.spawn().unwrap(),
            report,
        }
    }

    /// Stops it; fails if a handshake or a request has.
    fn finish(mut self) {
        signal::send(i32::try_from(self.child.id()).unwrap(), SIGINT).unwrap();
        self.child.wait().unwrap();
        let name = self.name;
        let report = fs::read_to_string(&self.report).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let requests = &report["requests"];
        assert_eq!(requests["failed"], 0, "{name}: {report}");
        assert!(requests["answered"].as_u64() > Some(0), "{name}: {report}");
        println!("{name}: {} handshakes, none failed", requests["answered"]);
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_certificate_that_is_replaced_is_shown_and_a_broken_one_is_not() {
    let keys = keys();
    let server = start(
        &keys,
        "server { %SECURE% http2 on; location / { return 200 here; } }",
    );
    let port = server.port();
    let put = |from: &str, to: &str| {
        let (from, to) = (keys.path().join(from), keys.path().join(to));
        let new = to.with_extension("new");
        fs::copy(from, &new).unwrap();
        fs::rename(new, to).unwrap();
    };
    assert_eq!(shown(port).as_deref(), Some("subject=CN = a.test"));
    // Handshakes continue all the time, and all succeed.
    let loads = [("h1", &[][..]), ("h2", &["--h2"])];
    let loads = loads.map(|(name, options)| Handshakes::start(&server, &keys, name, options));
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
        let begun = Instant::now();
        let new = wait_for(|| shown(port).filter(|subject| subject.contains("w.test")));
        assert!(new.is_some(), "{}", server.log("error.log"));
        let took_ms = begun.elapsed().as_millis();
        println!("the new certificate was shown after {took_ms} ms");
        put("text.pem", "ec.pem");
        server.wait_for_log("error.log", "no start line:Expecting: TRUSTED CERTIFICATE");
        assert_eq!(shown(port).as_deref(), Some("subject=CN = w.test"));
        fs::remove_file(keys.path().join("ec.key")).unwrap();
        server.wait_for_log("error.log", "ec.key\" is gone: its contents stay in use");
        assert_eq!(shown(port).as_deref(), Some("subject=CN = w.test"));
        is_done.store(true, Ordering::Relaxed);
        clients.join().unwrap();
    });
    loads.into_iter().for_each(Handshakes::finish);
    assert_eq!(curl(&server, "w.test", "/", &[]), "here");
}

#[test]
fn keys_of_tickets_that_are_replaced_count_without_a_reload() {
    let keys = keys();
    let put = |file: &str, byte: u8| {
        keys.write("next.key", [byte; 80]).unwrap();
        let at = keys.path();
        fs::rename(at.join("next.key"), at.join(file)).unwrap();
    };
    put("current.key", 1);
    put("previous.key", 2);
    let configuration = "
        ssl_session_ticket_key %KEYS%/current.key;
        ssl_session_ticket_key %KEYS%/previous.key;
        server { %SECURE% location / { return 200 here; } }";
    let server = start(&keys, configuration);
    let file = |name: &str| server.folder().join(name).display().to_string();
    let (first, second) = (file("first.pem"), file("second.pem"));
    let ask = |server: &Server, options: &[&str]| {
        let options = [&["-tls1_2", "-servername", "a.test"], options].concat();
        s_client(server, "GET / HTTP/1.0\r\n\r\n", &options)
    };
    let is_resumed = |server: &Server, session: &str| {
        ask(server, &["-sess_in", session]).contains("Reused, TLSv1")
    };
    ask(&server, &["-sess_out", &first]);
    assert!(is_resumed(&server, &first));
    put("previous.key", 1);
    put("current.key", 3);
    // Another server knows the new key alone.
    put("other.key", 3);
    let configuration = "
        ssl_session_ticket_key %KEYS%/other.key;
        server { %SECURE% location / { return 200 here; } }";
    let other = start(&keys, configuration);
    let is_new = wait_for(|| {
        ask(&server, &["-sess_out", &second]);
        is_resumed(&other, &second).then_some(())
    });
    assert!(is_new.is_some(), "{}", server.log("error.log"));
    assert!(is_resumed(&server, &first));
    put("previous.key", 4);
    let is_over = wait_for(|| (!is_resumed(&server, &first)).then_some(()));
    assert!(is_over.is_some(), "{}", server.log("error.log"));
    assert!(is_resumed(&server, &second));
}
