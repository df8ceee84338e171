//! https through rustls: resumption shares, trust, and failures of the handshake.

#![allow(clippy::unwrap_used)]

mod peers;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use peers::{answering, load, load_json, ok};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/key.pem");

/// A TLS peer that answers every request, on connections that stay open.
fn tls_peer() -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_file(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || {
                let mut stream = StreamOwned::new(session, socket);
                let mut buffer = Vec::new();
                let mut chunk = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut chunk) {
                    buffer.extend_from_slice(&chunk[..count]);
                    while let Some(end) = buffer.windows(4).position(|part| part == b"\r\n\r\n") {
                        buffer.drain(..end + 4);
                        let _ = stream.write_all(&ok("hello"));
                    }
                }
            });
        }
    });
    address
}

#[test]
fn sessions_are_resumed_in_the_share_asked_for() {
    let address = tls_peer();
    let trust = format!("--cacert {CERTIFICATE}");
    // (options, connections, least and most resumed)
    let cases = [
        ("-n 100 --insecure", 1, 0..=0),
        ("-n 100 -C 10 --insecure --tls-resume 0", 10, 0..=0),
        ("-n 100 -C 1 --insecure", 100, 90..=99),
        ("-n 200 -C 1 --insecure --tls-resume 50", 200, 60..=140),
        ("-n 50 -C 5 --pipeline 5 --insecure", 10, 8..=9),
        ("-n 20", 1, 0..=0),
    ];
    for (options, connections, resumed) in cases {
        let line = format!("-t 1 -c 1 {trust} {options} https://{address}/");
        let (report, status) = load_json(&line);
        assert_eq!(status, 0, "{options}: {report:#}");
        let counts = &report["connection_counts"];
        assert_eq!(counts["opened"], connections, "{options}");
        assert_eq!(report["parts_us"]["tls"]["count"], connections, "{options}");
        let seen = counts["tls_resumed"].as_u64().unwrap();
        assert!(resumed.contains(&seen), "{options}: {seen} resumed");
    }
}

#[test]
fn connections_without_requests_count_handshakes() {
    let address = tls_peer();
    for (resume, resumed) in [(0, 0..=0), (100, 90..=99)] {
        let line = format!(
            "-t 1 -c 1 -n 100 --connect-only --cacert {CERTIFICATE} --tls-resume {resume} \
             https://{address}/"
        );
        let (report, status) = load_json(&line);
        assert_eq!(status, 0, "{report:#}");
        assert_eq!(report["requests"]["answered"], 100, "{report:#}");
        let counts = &report["connection_counts"];
        assert_eq!(counts["opened"], 100, "{report:#}");
        let seen = counts["tls_resumed"].as_u64().unwrap();
        assert!(resumed.contains(&seen), "{resume}: {seen} resumed");
    }
}

#[test]
fn a_certificate_nobody_trusts_is_a_tls_error() {
    let address = tls_peer();
    for options in ["", "--cacert CERTIFICATE --sni other.test"] {
        let options = options.replace("CERTIFICATE", CERTIFICATE);
        // It ends at once: no other connection can go better.
        let line = format!("-t 1 -c 1 -d 1h {options} https://{address}/");
        let (report, status) = load_json(&line);
        assert_eq!(status, 2, "{line}");
        assert!(report["errors"]["tls"].as_u64() > Some(0), "{report:#}");
        assert_eq!(report["requests"]["answered"], 0, "{report:#}");
    }
    let (report, _) = load_json(&format!(
        "-t 1 -c 1 -n 3 --cacert {CERTIFICATE} --alpn spdy/3 https://{address}/"
    ));
    assert_eq!(report["errors"]["tls"], 3, "{report:#}");
}

/// A peer that speaks first, and not TLS.
fn greeting_peer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"220 mail ready\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    address
}

#[test]
fn a_failed_handshake_has_a_reason_and_a_hint() {
    let (secure, plain) = (tls_peer(), greeting_peer());
    let cases = [
        (
            secure.to_string(),
            "",
            "; trust it with --cacert FILE, or accept any with -k (--insecure)",
        ),
        (
            secure.to_string(),
            "--cacert CERTIFICATE --sni other.test",
            "--sni",
        ),
        (
            plain.to_string(),
            "--insecure",
            "; the server does not speak TLS here: try http://",
        ),
    ];
    for (address, options, hint) in cases {
        let options = options.replace("CERTIFICATE", CERTIFICATE);
        let output = load(&format!(
            "-t 1 -c 1 -n 2 -T 20s {options} https://{address}/"
        ));
        let text = String::from_utf8(output.stderr).unwrap();
        let begin = format!("TLS handshake with {address} failed: ");
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(&begin));
        let line = line.unwrap_or_else(|| panic!("{options}: {text}"));
        assert!(line.contains(hint), "{options}: {line}");
    }
}

#[test]
fn a_server_without_tls_is_a_tls_error_and_no_hang() {
    let peer = answering(ok("hello"));
    let line = format!(
        "-t 1 -c 1 -n 2 -T 300ms --insecure https://{}/",
        peer.address
    );
    let (report, status) = load_json(&line);
    assert_eq!(status, 3);
    let errors = &report["errors"];
    let seen = errors["tls"].as_u64().unwrap() + errors["connect_timeout"].as_u64().unwrap();
    assert_eq!(seen, 2, "{report:#}");
}
