//! Tests of `ssl_key_log` and `proxy_ssl_key_log`: the secrets that both sides of a session have.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use turnpike_testkit::{Server, Signal, wait_for};

use crate::support::tls::{keys, s_client, start};

const SERVERS: &str = "
    server {
        %SECURE%
        ssl_key_log server.log;
        location / { return 200 served; }
        location /itself {
            proxy_pass https://127.0.0.1:%PORT%/;
            proxy_ssl_key_log proxy.log;
        }
    }";

/// The lines of a file, which label and numbers have in any case.
fn lines(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap().to_ascii_lowercase();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Asks by OpenSSL's client, which writes its secrets to this file.
fn ask(server: &Server, version: &str, target: &str, file: &Path) {
    let file = file.display().to_string();
    let request = format!("GET {target} HTTP/1.0\r\n\r\n");
    let reply = s_client(server, &request, &[version, "-keylogfile", &file]);
    assert!(reply.contains("served"), "{reply}");
}

#[test]
fn both_sides_of_a_session_write_the_same_secrets() {
    let keys = keys();
    let server = start(&keys, SERVERS);
    let (ours, proxy) = (
        server.folder().join("server.log"),
        server.folder().join("proxy.log"),
    );
    for version in ["-tls1_2", "-tls1_3"] {
        let theirs = server.folder().join(format!("client{version}.log"));
        ask(&server, version, "/", &theirs);
        let (ours, theirs) = (lines(&ours), lines(&theirs));
        assert!(
            !theirs.is_empty() && ours.is_superset(&theirs),
            "{ours:?} {theirs:?}"
        );
    }
    let known = lines(&ours);
    let theirs = server.folder().join("last.log");
    ask(&server, "-tls1_3", "/itself", &theirs);
    let known = known.union(&lines(&theirs)).cloned().collect();
    let new: BTreeSet<String> = lines(&ours).difference(&known).cloned().collect();
    assert_eq!(lines(&proxy), new);
}

#[test]
fn others_cannot_read_the_file() {
    let keys = keys();
    let server = start(&keys, SERVERS);
    let file = server.folder().join("server.log");
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::rename(&file, server.folder().join("old.log")).unwrap();
    server.signal(Signal::SIGUSR1);
    server.wait_for_log("error.log", "reopening logs");
    wait_for(|| file.exists().then_some(())).unwrap();
    assert_eq!(mode(), 0o600);
}
