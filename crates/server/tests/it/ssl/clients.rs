//! Tests of clients' certificates: the requirement, their validity, and variables.

use std::io::{BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use turnpike_testkit::{Folder, Server, wait_for};

use crate::support::tls::{NEW_KEY, curl, keys, openssl, s_client, start};

/// OpenSSL's command of the authority `root`.
const CA: &[&str] = &[
    "ca", "-config", "ca.conf", "-keyfile", "root.key", "-cert", "root.pem",
];

/// Adds certificates that `root` has signed: `known`, of a client, `old`, of version 1, `server`,
/// for servers only, and `gone`, which is in its list `root.crl`.
fn clients() -> Folder {
    let keys = keys();
    let at = keys.path();
    let root = [
        "req",
        "-x509",
        "-subj",
        "/C=DE/O=Root, Inc./CN=root",
        "-days",
        "99",
    ];
    openssl(
        at,
        &[
            &root[..],
            &NEW_KEY,
            &["-keyout", "root.key", "-out", "root.pem"],
        ]
        .concat(),
    );
    let cases = [
        ("known", "extendedKeyUsage=clientAuth", "10"),
        ("old", "", "255"),
        ("server", "extendedKeyUsage=serverAuth", "12"),
        ("gone", "", "13"),
    ];
    for (name, extensions, serial) in cases {
        keys.write("extensions", extensions).unwrap();
        let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
        let subject = format!("/O=Some, Body/CN={name}");
        let request = [
            "req", "-new", "-subj", &subject, "-keyout", &key, "-out", "csr",
        ];
        openssl(at, &[&request[..], &NEW_KEY].concat());
        let sign = [
            "x509", "-req", "-in", "csr", "-CA", "root.pem", "-CAkey", "root.key",
        ];
        let more = [
            "-days",
            "9",
            "-set_serial",
            serial,
            "-extfile",
            "extensions",
            "-out",
            &pem,
        ];
        openssl(at, &[&sign[..], &more].concat());
    }
    let lists = "[ca]\ndefault_ca=c\n[c]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\n\
                 default_crl_days=5\n";
    keys.write("ca.conf", lists).unwrap();
    keys.write("index", "").unwrap();
    keys.write("number", "01").unwrap();
    revoke(at, "gone.pem");
    keys
}

/// Adds a certificate to the list of the revoked ones, which is replaced as a whole.
fn revoke(at: &Path, certificate: &str) {
    openssl(at, &[CA, &["-revoke", certificate]].concat());
    openssl(at, &[CA, &["-gencrl", "-out", "new.crl"]].concat());
    std::fs::rename(at.join("new.crl"), at.join("root.crl")).unwrap();
}

const SERVERS: &str = r#"
    server {
        %SECURE%
        server_name off.test;
        location / { return 200 "off $ssl_client_verify"; }
    }
    server {
        %SECURE%
        server_name on.test;
        ssl_verify_client on;
        ssl_client_certificate %KEYS%/root.pem;
        location / { return 200 "$ssl_client_verify $ssl_client_s_dn $ssl_client_serial"; }
        location /issuer { return 200 "$ssl_client_i_dn $ssl_client_i_dn_legacy"; }
        location /time { return 200 "$ssl_client_v_start/$ssl_client_v_end/$ssl_client_v_remain"; }
        location /print { return 200 "$ssl_client_fingerprint"; }
        location /pem { return 200 "$ssl_client_raw_cert"; }
        location /escaped { return 200 "$ssl_client_escaped_cert"; }
        location /header { add_header X-Certificate $ssl_client_cert; return 200; }
    }
    server {
        %SECURE%
        server_name optional.test;
        ssl_verify_client optional;
        ssl_trusted_certificate %KEYS%/root.pem;
        location / { return 200 "$ssl_client_verify"; }
    }
    server {
        %SECURE%
        server_name any.test;
        ssl_verify_client optional_no_ca;
        location / { return 200 "$ssl_client_verify"; }
    }
    server {
        %SECURE%
        server_name crl.test;
        ssl_verify_client on;
        ssl_client_certificate %KEYS%/root.pem;
        ssl_crl %KEYS%/root.crl;
        error_page 495 496 =403 /page;
        location / { return 200 "$ssl_client_verify"; }
        location /page { return 403 "page $ssl_client_verify"; }
    }"#;

const NO_CERTIFICATE: &str = "No required SSL certificate was sent";
const BAD: &str = "The SSL certificate error";

/// The server, the client's certificate, and a part of the response.
const ASKED: &[(&str, &str, &str)] = &[
    ("off.test", "", "off NONE"),
    ("off.test", "known", "off NONE"),
    ("on.test", "", NO_CERTIFICATE),
    ("on.test", "known", "SUCCESS CN=known,O=Some\\, Body 0A"),
    ("on.test", "old", "SUCCESS CN=old,O=Some\\, Body FF"),
    ("on.test", "server", BAD),
    ("on.test", "ec", BAD),
    ("optional.test", "", "NONE"),
    ("optional.test", "known", "SUCCESS"),
    ("optional.test", "ec", BAD),
    ("any.test", "", "NONE"),
    ("any.test", "ec", "FAILED:self-signed certificate"),
    (
        "any.test",
        "known",
        "FAILED:unable to verify the first certificate",
    ),
    ("crl.test", "", "page NONE"),
    ("crl.test", "old", "SUCCESS"),
    ("crl.test", "gone", "page FAILED:certificate revoked"),
];

#[test]
fn clients_send_the_required_certificates() {
    let keys = clients();
    let server = start(&keys, SERVERS);
    for (name, certificate, expected) in ASKED {
        for version in ["1.2", "1.3"] {
            let reply = ask(
                &server,
                &keys,
                name,
                certificate,
                "/",
                &["--tls-max", version],
            );
            assert!(
                reply.contains(expected),
                "{name} {certificate} {version}: {reply}"
            );
        }
    }
    for logged in [
        "client sent no required SSL certificate while reading client request headers",
        "client SSL certificate verify error: (26:unsuitable certificate purpose) while",
        "client SSL certificate verify error: (23:certificate revoked) while",
    ] {
        server.wait_for_log("error.log", logged);
    }
    a_certificate_is_shown_in_openssls_formats(&server, &keys);
    another_name_than_that_of_the_handshake_is_refused(&server, &keys);
    a_resumed_session_knows_its_client(&server, keys.path());
}

#[test]
fn a_list_of_revoked_certificates_that_is_replaced_counts_without_a_reload() {
    let keys = clients();
    let server = start(&keys, SERVERS);
    let known = || ask(&server, &keys, "crl.test", "known", "/", &[]);
    assert_eq!(known(), "SUCCESS");
    revoke(keys.path(), "known.pem");
    let refused = wait_for(|| known().contains("FAILED:certificate revoked").then_some(()));
    assert!(refused.is_some(), "{}", server.log("error.log"));
    // A list that cannot be read does not forgive anybody.
    keys.write("root.crl", "no list").unwrap();
    server.wait_for_log("error.log", "root.crl");
    assert_eq!(known(), "page FAILED:certificate revoked");
}

#[test]
fn an_open_connection_is_held_to_a_new_list_of_revoked_certificates() {
    let keys = clients();
    let server = start(&keys, SERVERS);
    let port = server.port();
    let mut client = Command::new("openssl")
        .current_dir(keys.path())
        .args(["s_client", "-quiet", "-servername", "crl.test"])
        .args(["-cert", "known.pem", "-key", "known.key"])
        .args(["-connect", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, output) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
    let mut lines = BufReader::new(output);
    let mut next = |expected: &str| {
        let request = "GET / HTTP/1.1\r\nHost: crl.test\r\n\r\n";
        input.write_all(request.as_bytes()).unwrap();
        let mut received = Vec::new();
        while !received.ends_with(expected.as_bytes()) {
            let mut byte = [0];
            lines.read_exact(&mut byte).unwrap();
            received.extend(byte);
        }
    };
    next("\r\n\r\nSUCCESS");
    revoke(keys.path(), "known.pem");
    let fresh = || ask(&server, &keys, "crl.test", "known", "/", &[]);
    let refused = wait_for(|| fresh().contains("FAILED").then_some(()));
    assert!(refused.is_some(), "{}", server.log("error.log"));
    next("page FAILED:certificate revoked");
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn clients_that_name_no_server_are_judged_by_the_one_of_their_request() {
    let keys = clients();
    let servers = r#"
        server {
            %SECURE%
            ssl_verify_client optional;
            ssl_client_certificate %KEYS%/ec.pem;
            location / { return 200 "$ssl_client_verify"; }
        }
        server {
            %SECURE%
            server_name on.test;
            ssl_verify_client on;
            ssl_client_certificate %KEYS%/root.pem;
            location / { return 200 "$ssl_client_verify"; }
        }"#;
    let server = start(&keys, servers);
    let cases = [
        ("ec", "default.test", "SUCCESS"),
        ("ec", "on.test", BAD),
        ("known", "on.test", "SUCCESS"),
        ("known", "default.test", BAD),
    ];
    let file = |name: &str| keys.path().join(name).display().to_string();
    for (certificate, host, expected) in cases {
        let request = format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n");
        let (pem, key) = (
            file(&format!("{certificate}.pem")),
            file(&format!("{certificate}.key")),
        );
        let more = ["-noservername", "-cert", &pem, "-key", &key];
        let reply = s_client(&server, &request, &more);
        assert!(reply.contains(expected), "{certificate} {host}: {reply}");
    }
}

fn ask(
    server: &Server,
    keys: &Folder,
    name: &str,
    certificate: &str,
    target: &str,
    more: &[&str],
) -> String {
    let file = |kind: &str| {
        keys.path()
            .join(format!("{certificate}.{kind}"))
            .display()
            .to_string()
    };
    let (pem, key) = (file("pem"), file("key"));
    let shown = ["--cert", &pem, "--key", &key];
    let shown = if certificate.is_empty() {
        &[][..]
    } else {
        &shown
    };
    curl(server, name, target, &[shown, more].concat())
}

fn a_certificate_is_shown_in_openssls_formats(server: &Server, keys: &Folder) {
    let value = |target: &str| ask(server, keys, "on.test", "known", target, &[]);
    let issuer = "CN=root,O=Root\\, Inc.,C=DE /C=DE/O=Root, Inc./CN=root";
    assert_eq!(value("/issuer"), issuer);
    let x509 = |what: &[&str]| {
        let known = ["x509", "-in", "known.pem", "-noout"];
        openssl(keys.path(), &[&known[..], what].concat())
    };
    let dates = x509(&["-dates"]);
    let mut dates = dates.lines().filter_map(|line| line.split_once('='));
    let (start, end) = (dates.next().unwrap().1, dates.next().unwrap().1);
    let days_before = days_until(end);
    let time = value("/time");
    let (dates, days) = time.rsplit_once('/').unwrap();
    assert_eq!(dates, format!("{start}/{end}"));
    let days_left = days_until(end)..=days_before;
    assert!(days_left.contains(&days.parse().unwrap()), "{days} days");
    let print = x509(&["-fingerprint", "-sha1"]);
    let print = print.trim_end().split_once('=').unwrap().1.replace(':', "");
    assert_eq!(value("/print"), print.to_lowercase());
    let pem = std::fs::read_to_string(keys.path().join("known.pem")).unwrap();
    assert_eq!(value("/pem"), pem);
    let escaped = value("/escaped").replace("%0A", "\n").replace("%20", " ");
    let escaped = escaped
        .replace("%2B", "+")
        .replace("%2F", "/")
        .replace("%3D", "=");
    assert_eq!(escaped, pem);
    let header = ask(server, keys, "on.test", "known", "/header", &["-i"]);
    let field = format!("X-Certificate: {}\r\n", pem.trim_end().replace('\n', " "));
    assert!(header.contains(&field), "{header}");
}

/// The whole days from now to `date`, a date in OpenSSL's format.
fn days_until(date: &str) -> i64 {
    let output = Command::new("date")
        .args(["-d", date, "+%s"])
        .output()
        .unwrap();
    let date: i64 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (date - now.as_secs() as i64).div_euclid(24 * 60 * 60)
}

fn another_name_than_that_of_the_handshake_is_refused(server: &Server, keys: &Folder) {
    for (name, host, status) in [
        ("off.test", "on.test", "421"),
        ("optional.test", "on.test", "421"),
        ("on.test", "off.test", "200"),
    ] {
        let host = format!("Host: {host}");
        let reply = ask(server, keys, name, "known", "/", &["-i", "-H", &host]);
        assert!(
            reply.starts_with(&format!("HTTP/1.1 {status} ")),
            "{name} {host}: {reply}"
        );
    }
    let logged = "client attempted to request the server name different from the one that was \
                  negotiated";
    server.wait_for_log("error.log", logged);
}

fn a_resumed_session_knows_its_client(server: &Server, keys: &Path) {
    let session = server.folder().join("session.pem").display().to_string();
    let file = |name: &str| keys.join(name).display().to_string();
    let (pem, key) = (file("known.pem"), file("known.key"));
    let request = "GET / HTTP/1.0\r\nHost: on.test\r\n\r\n";
    for version in ["-tls1_2", "-tls1_3"] {
        let common = [version, "-servername", "on.test", "-sess_out", &session];
        let shown = ["-cert", &pem, "-key", &key];
        s_client(server, request, &[&common[..], &shown].concat());
        let reply = s_client(
            server,
            request,
            &[&common[..3], &["-sess_in", &session]].concat(),
        );
        assert!(reply.contains("Reused, TLSv1"), "{version}: {reply}");
        assert!(reply.contains("SUCCESS CN=known"), "{version}: {reply}");
    }
}
