//! Tests of `ssl_ocsp`: clients whose certificates are revoked, or may be, are refused.
//!
//! OpenSSL makes the certificates and the answers; scripted origins are the responders.

use std::fs;
use std::path::Path;

use turnpike_testkit::{Folder, Origin, Server, Step};

use crate::support::ocsp::{certificates, responder};
use crate::support::tls::{TURNPIKE, configured, curl, openssl, s_client, start};

const FAILED: &str = "FAILED:certificate status request failed";

/// The directives, the answers of the responder, the client's certificate, what a client is told,
/// and how often the responder was asked. Each is asked for twice, the second time by a new client.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static str,
    [&'static str; 2],
    usize,
);

const CASES: &[Case] = &[
    ("leaf", &["good"], "good", ["SUCCESS", "SUCCESS"], 2),
    (
        "leaf",
        &["gone"],
        "gone",
        ["FAILED:certificate revoked"; 2],
        2,
    ),
    (
        "leaf",
        &["unknown"],
        "good",
        ["FAILED:certificate status unknown"; 2],
        2,
    ),
    ("leaf", &["gone", "-"], "good", [FAILED; 2], 2),
    ("leaf", &["foreign", "unappointed"], "good", [FAILED; 2], 2),
    ("leaf", &["appointed"], "good", ["SUCCESS"; 2], 2),
    ("on", &["good", "int"], "good", ["SUCCESS", FAILED], 3),
    ("on", &["good", "-"], "good", [FAILED; 2], 3),
    (
        "leaf; ssl_ocsp_cache shared:a:32k",
        &["good", "-"],
        "good",
        ["SUCCESS"; 2],
        1,
    ),
    (
        "leaf; ssl_ocsp_cache shared:b:32k",
        &["gone", "-"],
        "gone",
        ["FAILED:certificate revoked"; 2],
        1,
    ),
    (
        "leaf; ssl_ocsp_cache shared:c:32k",
        &["-", "good"],
        "good",
        [FAILED, "SUCCESS"],
        2,
    ),
    (
        "leaf; ssl_crl %KEYS%/none.crl",
        &["good"],
        "gone",
        ["FAILED:unable to get certificate CRL"; 2],
        0,
    ),
];

#[test]
fn a_client_is_served_only_if_its_certificate_is_known_to_be_good() {
    let own = Origin::start(vec![vec![Step::ReadHead]]);
    let keys = certificates(own.port());
    let at = keys.path();
    lists_nothing(at);
    let responders: Vec<Origin> = CASES.iter().map(|case| responder(at, case.1)).collect();
    let servers = CASES.iter().zip(&responders).enumerate();
    let servers = servers.map(|(at, (case, responder))| {
        server_block(
            at,
            case.0,
            &format!("ssl_ocsp_responder http://127.0.0.1:{};", responder.port()),
        )
    });
    let server = start(&keys, &servers.collect::<String>());
    for (at, (case, responder)) in CASES.iter().zip(&responders).enumerate() {
        let (directives, answers, certificate, told, asked) = case;
        for expected in told {
            let reply = ask(&server, &keys, at, certificate);
            assert_eq!(reply, *expected, "{directives} {answers:?} {certificate}");
        }
        let connections = responder.received().len();
        assert_eq!(
            connections, *asked,
            "{directives} {answers:?} {certificate}"
        );
    }
    server.wait_for_log(
        "error.log",
        "client SSL certificate verify error: certificate revoked while",
    );
    let why = "OCSP response is not signed by a responder of the issuer while requesting \
               certificate status, responder: http://127.0.0.1";
    server.wait_for_log("error.log", why);
}

fn server_block(at: usize, ocsp: &str, more: &str) -> String {
    format!(
        "server {{
            %SECURE%
            server_name s{at}.test;
            ssl_verify_client on;
            ssl_verify_depth 2;
            ssl_client_certificate %KEYS%/trusted.pem;
            ssl_ocsp {ocsp};
            {more}
            error_page 495 496 =403 /page;
            location / {{ return 200 $ssl_client_verify; }}
            location /page {{ return 403 $ssl_client_verify; }}
        }}"
    )
}

/// Writes a list of a CA that has issued no client's certificate.
fn lists_nothing(at: &Path) {
    let lists = "[ca]\ndefault_ca=c\n[c]\ndatabase=none.index\ncrlnumber=none.number\n\
                 default_md=sha256\ndefault_crl_days=5\n";
    fs::write(at.join("none.conf"), lists).unwrap();
    fs::write(at.join("none.index"), "").unwrap();
    fs::write(at.join("none.number"), "01").unwrap();
    let ca = ["ca", "-config", "none.conf", "-keyfile", "root.key"];
    let more = ["-cert", "root.pem", "-gencrl", "-out", "none.crl"];
    openssl(at, &[&ca[..], &more].concat());
}

fn ask(server: &Server, keys: &Folder, at: usize, certificate: &str) -> String {
    let [pem, key] = ["pem", "key"].map(|kind| {
        let file = keys.path().join(format!("{certificate}.{kind}"));
        file.display().to_string()
    });
    let shown = ["--cert", &pem, "--key", &key];
    curl(server, &format!("s{at}.test"), "/", &shown)
}

#[test]
fn a_certificate_names_its_responder() {
    let placeholder = Origin::start(vec![vec![Step::ReadHead]]);
    let keys = certificates(placeholder.port());
    let server = start(&keys, &server_block(0, "leaf", ""));
    assert_eq!(ask(&server, &keys, 0, "named"), FAILED);
    assert_eq!(placeholder.received().len(), 1);
    // A client whose certificate names none is refused as well.
    assert_eq!(ask(&server, &keys, 0, "good"), FAILED);
    assert_eq!(placeholder.received().len(), 1);
    let why = "no OCSP responder URL in the certificate while requesting certificate status";
    server.wait_for_log("error.log", why);
    let asked = String::from_utf8(placeholder.received()[0].clone()).unwrap();
    assert!(
        asked.starts_with("GET /MEIwQDA%2BMDwwOjAJBgUrDgMCGgUABB"),
        "{asked}"
    );
}

#[test]
fn a_resumed_session_is_asked_for_again() {
    let placeholder = Origin::start(vec![vec![Step::ReadHead]]);
    let keys = certificates(placeholder.port());
    for version in ["-tls1_2", "-tls1_3"] {
        let responder = responder(keys.path(), &["good", "good", "later"]);
        let url = format!("ssl_ocsp_responder http://127.0.0.1:{};", responder.port());
        let server = start(&keys, &server_block(0, "leaf", &url));
        let file = |name: &str| keys.path().join(name).display().to_string();
        let (pem, key, session) = (file("good.pem"), file("good.key"), file("session.pem"));
        let shown = ["-cert", &pem, "-key", &key, "-sess_out", &session];
        let request = "GET / HTTP/1.0\r\nHost: s0.test\r\n\r\n";
        let common = [version, "-servername", "s0.test"];
        let reply = s_client(&server, request, &[&common[..], &shown].concat());
        assert!(reply.contains("SUCCESS"), "{reply}");
        for expected in ["SUCCESS", "FAILED:certificate revoked"] {
            let reply = s_client(
                &server,
                request,
                &[&common[..], &["-sess_in", &session]].concat(),
            );
            assert!(reply.contains("Reused, TLSv1"), "{version}: {reply}");
            assert!(reply.contains(expected), "{version}: {reply}");
        }
    }
}

#[test]
fn sessions_of_stream_are_closed() {
    let placeholder = Origin::start(vec![vec![Step::ReadHead]]);
    let keys = certificates(placeholder.port());
    let responder = responder(keys.path(), &["good", "later"]);
    let stream = format!(
        "stream {{
            log_format state $status:$ssl_client_verify;
            access_log %FOLDER%/stream.log state;
            server {{
                listen 127.0.0.1:%PORT% ssl;
                ssl_certificate %KEYS%/ec.pem;
                ssl_certificate_key %KEYS%/ec.key;
                ssl_verify_client on;
                ssl_verify_depth 2;
                ssl_client_certificate %KEYS%/trusted.pem;
                ssl_ocsp leaf;
                ssl_ocsp_responder http://127.0.0.1:{};
                return $ssl_client_verify;
            }}
        }}",
        responder.port()
    );
    let folder = keys.path().display().to_string();
    let configuration = configured(&keys, "") + &stream.replace("%KEYS%", &folder);
    let server = Server::builder(TURNPIKE)
        .configuration(&configuration)
        .start();
    let file = |name: &str| keys.path().join(name).display().to_string();
    let (pem, key) = (file("good.pem"), file("good.key"));
    let shown = ["-cert", &pem, "-key", &key];
    assert!(s_client(&server, "", &shown).contains("SUCCESS"));
    assert!(!s_client(&server, "", &shown).contains("SUCCESS"));
    server.wait_for_log("stream.log", "200:SUCCESS\n500:FAILED:certificate revoked");
}
