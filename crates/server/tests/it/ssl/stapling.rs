//! Tests of `ssl_stapling`: a client that asks for the state of the server's certificate gets it.
//!
//! OpenSSL makes the certificates and the answers, and its client reads them; scripted origins are
//! the responders.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use turnpike_testkit::{Folder, Server, Signal, wait_for};

use crate::support::ocsp::{certificates, responder};
use crate::support::tls::{s_client, start};

/// What OpenSSL's client says where it gets no answer.
const NONE: &str = "OCSP response: no response sent";

/// The answer about the certificate `good`, whose serial number is 0x11.
const GOOD: &str = "Serial Number: 11, Cert Status: good";
const REVOKED: &str = "Serial Number: 11, Cert Status: revoked";

/// A server's name, its directives, and what its clients are shown.
const FILES: &[(&str, &str, &str)] = &[
    ("on.test", "ssl_stapling_file %KEYS%/good.der;", GOOD),
    // What a file says is not judged.
    (
        "revoked.test",
        "ssl_stapling_file %KEYS%/later.der;",
        REVOKED,
    ),
    (
        "off.test",
        "ssl_stapling off; ssl_stapling_file %KEYS%/good.der;",
        NONE,
    ),
];

/// Directives, the answers of the responder, what clients are shown in the end, and why not the
/// answer.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static str,
    Option<&'static str>,
);

const VERIFIED: &str = "ssl_stapling_verify on; ssl_trusted_certificate %KEYS%/trusted.pem;";

const ANSWERED: &[Case] = &[
    ("", &["good"], GOOD, None),
    ("", &["appointed"], GOOD, None),
    ("", &["unappointed"], GOOD, None),
    (VERIFIED, &["good"], GOOD, None),
    (VERIFIED, &["appointed"], GOOD, None),
    // The responder is asked again.
    (VERIFIED, &["-", "good"], GOOD, None),
    (
        VERIFIED,
        &["unappointed"],
        NONE,
        Some("OCSP response is not signed by a responder of the issuer"),
    ),
    (
        VERIFIED,
        &["foreign"],
        NONE,
        Some("OCSP response is not signed by a responder of the issuer"),
    ),
    (
        "",
        &["later"],
        NONE,
        Some("certificate status \"revoked\" in the OCSP response"),
    ),
    (
        "",
        &["unknown"],
        NONE,
        Some("certificate status \"unknown\" in the OCSP response"),
    ),
    ("", &["gone"], NONE, Some("in the OCSP response")),
];

fn server_block(name: &str, certificate: &str, directives: &str) -> String {
    let stapling = if directives.contains("ssl_stapling off") {
        ""
    } else {
        "ssl_stapling on;"
    };
    format!(
        "server {{
            listen 127.0.0.1:%PORT% ssl;
            server_name {name};
            ssl_certificate %KEYS%/{certificate};
            ssl_certificate_key %KEYS%/good.key;
            {stapling}
            {directives}
            location / {{ return 200; }}
        }}"
    )
}

/// What a client of this server is shown in a handshake of this version.
fn shown(server: &Server, name: &str, version: &str) -> String {
    let request = "GET / HTTP/1.0\r\n\r\n";
    let options = ["-status", version, "-servername", name];
    let said = s_client(server, request, &options);
    let line = |start: &str| {
        let mut lines = said.lines().map(str::trim);
        lines.find(|line| line.starts_with(start))
    };
    match (line(NONE), line("Serial Number: "), line("Cert Status: ")) {
        (None, Some(serial), Some(status)) => format!("{serial}, {status}"),
        (Some(none), None, None) => none.to_owned(),
        _ => panic!("{said}"),
    }
}

/// The folder of certificates, with the file `chain.pem`: the server's, and its issuer's.
fn keys() -> Folder {
    let keys = certificates(1);
    let chain = keys.read("good.pem") + &keys.read("int.pem");
    keys.write("chain.pem", chain).unwrap();
    keys
}

#[test]
fn the_answer_in_a_file_is_shown() {
    let keys = keys();
    let blocks = FILES.iter();
    let blocks = blocks.map(|(name, directives, _)| server_block(name, "good.pem", directives));
    let server = start(&keys, &blocks.collect::<String>());
    for (name, directives, expected) in FILES {
        for version in ["-tls1_2", "-tls1_3"] {
            let shown = shown(&server, name, version);
            assert_eq!(shown, *expected, "{directives} {version}");
        }
    }
}

#[test]
fn the_answers_of_responders_are_shown_if_they_are_good() {
    let keys = keys();
    let responders = ANSWERED.iter().map(|case| responder(keys.path(), case.1));
    let responders: Vec<_> = responders.collect();
    let blocks = ANSWERED.iter().zip(&responders).enumerate();
    let blocks = blocks.map(|(at, ((directives, ..), responder))| {
        let port = responder.port();
        let url = format!("{directives} ssl_stapling_responder http://127.0.0.1:{port};");
        server_block(&format!("s{at}.test"), "chain.pem", &url)
    });
    let server = start(&keys, &blocks.collect::<String>());
    for (at, ((directives, answers, expected, why), responder)) in
        ANSWERED.iter().zip(&responders).enumerate()
    {
        let name = format!("s{at}.test");
        if let Some(why) = why {
            let url = format!("responder: http://127.0.0.1:{}", responder.port());
            let line = format!("{why} while requesting certificate status, {url}");
            server.wait_for_log("error.log", &line);
        }
        let found = wait_for(|| (shown(&server, &name, "-tls1_3") == *expected).then_some(()));
        assert!(
            found.is_some(),
            "{directives} {answers:?}: {}",
            server.log("error.log")
        );
        assert_eq!(shown(&server, &name, "-tls1_2"), *expected);
    }
}

/// Answers the first question on the port of a certificate, and counts all of them.
fn answer(listener: TcpListener, der: Vec<u8>, asked: Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", der.len());
                let _ = stream.write_all(&[head.as_bytes(), &der].concat());
            }
        }
    });
}

#[test]
fn a_certificate_names_its_responder_and_a_reload_keeps_the_answer() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let keys = certificates(listener.local_addr().unwrap().port());
    let chain = keys.read("named.pem") + &keys.read("int.pem");
    keys.write("chain.pem", chain).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let der = std::fs::read(keys.path().join("good.der")).unwrap();
    answer(listener, der, Arc::clone(&asked));
    let block = server_block("a.test", "chain.pem", "");
    let server = start(&keys, &block.replace("good.key", "named.key"));
    let is_shown = || shown(&server, "a.test", "-tls1_3") == GOOD;
    assert!(wait_for(|| is_shown().then_some(())).is_some());
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "serving with configuration 2");
    assert!(is_shown());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
