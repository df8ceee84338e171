#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection};
use tokio::runtime::Builder;

use super::{TlsConnector, TlsError, TlsSettings};
use crate::{
    Address, ConnectError, ConnectOptions, Connection, KeepAlive, Liveness, Picked, Pool, Tls,
};
use crate::{Group, GroupSettings, GroupStates, Peer, PeerSettings, PeerState, Selection};

/// The time limit of a test's waits.
const PATIENCE_MS: u64 = 60_000;

/// A certificate and its key, valid until 2126, for these tests only.
#[derive(Clone, Copy)]
struct Pair {
    certificate: &'static str,
    key: &'static str,
}

/// Of `peer.test`.
const OWN: Pair = Pair {
    certificate: include_str!("tests/own.pem"),
    key: include_str!("tests/own.key"),
};

/// Of `peer.test` as well, with another key.
const OTHER: Pair = Pair {
    certificate: include_str!("tests/other.pem"),
    key: include_str!("tests/other.key"),
};

/// Of `old.test`, by its common name: a certificate of version 1.
const OLD: Pair = Pair {
    certificate: include_str!("tests/old.pem"),
    key: include_str!("tests/old.key"),
};

/// Of `client.test`.
const CLIENT: Pair = Pair {
    certificate: include_str!("tests/client.pem"),
    key: include_str!("tests/client.key"),
};

fn certified(pair: &Pair) -> CertifiedKey {
    let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    CertifiedKey::new(chain, any_supported_type(&key).unwrap())
}

/// A peer that answers every 4 bytes with 4 bytes; it reports the kind of each handshake.
fn peer(pair: &Pair, clients: Option<&Pair>) -> (u16, Receiver<HandshakeKind>) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            let pem = clients.certificate.as_bytes();
            roots
                .add(CertificateDer::from_pem_slice(pem).unwrap())
                .unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let own = SingleCertAndKey::from(certified(pair));
    let config = Arc::new(builder.with_cert_resolver(Arc::new(own)));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, handshakes) = channel();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::Stream::new(&mut session, &mut socket);
            let mut word = [0; 4];
            let mut first = true;
            while stream.read_exact(&mut word).is_ok() {
                if std::mem::take(&mut first) {
                    let _ = sender.send(stream.conn.handshake_kind().unwrap());
                }
                if stream.write_all(b"pong").is_err() {
                    break;
                }
            }
        }
    });
    (port, handshakes)
}

fn picked(port: u16) -> Picked {
    let address = Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let peer = Peer::new("peer", address, PeerSettings::default(), PeerState::new(1));
    let states = Arc::new(GroupStates::default());
    let peers = vec![vec![Arc::new(peer)]];
    let group = Group::new("group", GroupSettings::default(), peers, states);
    group.begin(&Selection::default()).next(1).unwrap()
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(test)
}

fn options<'a>(connector: &'a Arc<TlsConnector>, name: &'a str) -> ConnectOptions<'a> {
    ConnectOptions {
        timeout_ms: PATIENCE_MS,
        tls: Some(Tls {
            connector,
            name,
            protocols: &[],
            timeout_ms: PATIENCE_MS,
        }),
        ..ConnectOptions::default()
    }
}

async fn ping(connection: &Connection) -> Vec<u8> {
    let mut answer = Vec::new();
    connection.write_all(b"ping", PATIENCE_MS).await.unwrap();
    while answer.len() < 4 {
        let read = connection.read(&mut answer, 4096, PATIENCE_MS).await;
        assert!(read.unwrap() > 0);
    }
    answer
}

#[test]
fn certificates_are_verified_if_configured() {
    let (own, _handshakes) = peer(&OWN, None);
    let (old, _handshakes) = peer(&OLD, None);
    let verify = |trusted: &Pair| TlsSettings {
        verify: true,
        trusted: trusted.certificate.into(),
        server_name: true,
        ..TlsSettings::default()
    };
    let does_not_match = "upstream SSL certificate does not match \"other.test\"";
    let cases = [
        (own, TlsSettings::default(), "any.test", None),
        (own, TlsSettings::default(), "not a_name", None),
        (own, verify(&OWN), "peer.test", None),
        (own, verify(&OWN), "other.test", Some(does_not_match)),
        (old, TlsSettings::default(), "any.test", None),
        (old, verify(&OLD), "old.test", None),
        (old, verify(&OLD), "other.test", Some(does_not_match)),
        (
            own,
            verify(&OTHER),
            "peer.test",
            Some("upstream SSL certificate verify error: (18:self-signed certificate)"),
        ),
    ];
    run(async {
        for (port, settings, name, failure) in cases {
            let connector = Arc::new(TlsConnector::new(&settings).unwrap());
            let opened = Connection::open(&picked(port), &options(&connector, name), 0).await;
            match (opened, failure) {
                (Ok(connection), None) => assert_eq!(ping(&connection).await, b"pong"),
                (Err(error), Some(failure)) => {
                    assert_eq!(error.action(), "SSL handshaking to upstream");
                    assert_eq!(error.to_string(), failure);
                }
                (Ok(_), Some(failure)) => panic!("no {failure}"),
                (Err(error), None) => panic!("{name}: {error}"),
            }
        }
    });
}

#[test]
fn sessions_are_resumed_if_allowed() {
    for (session_reuse, second) in [(true, HandshakeKind::Resumed), (false, HandshakeKind::Full)] {
        let (port, handshakes) = peer(&OWN, None);
        let settings = TlsSettings {
            session_reuse,
            server_name: true,
            ..TlsSettings::default()
        };
        let connector = Arc::new(TlsConnector::new(&settings).unwrap());
        for expected in [HandshakeKind::Full, second] {
            run(async {
                let options = options(&connector, "peer.test");
                let connection = Connection::open(&picked(port), &options, 0).await.unwrap();
                assert_eq!(ping(&connection).await, b"pong");
            });
            assert_eq!(handshakes.recv().unwrap(), expected);
        }
    }
}

#[test]
fn a_session_is_kept_with_its_connection() {
    let (port, handshakes) = peer(&OWN, None);
    let connector = Arc::new(TlsConnector::new(&TlsSettings::default()).unwrap());
    run(async {
        let (picked, pool) = (picked(port), Pool::new(KeepAlive::default()));
        let options = options(&connector, "peer.test");
        let connection = Connection::open(&picked, &options, 0).await.unwrap();
        assert_eq!(ping(&connection).await, b"pong");
        pool.put(connection, 0);
        let plain = ConnectOptions {
            tls: None,
            ..options
        };
        assert!(pool.take(&picked, &plain, 0, Liveness::Trust).is_none());
        let connection = pool.take(&picked, &options, 0, Liveness::Trust).unwrap();
        assert_eq!(ping(&connection).await, b"pong");
    });
    assert_eq!(handshakes.iter().take(1).count(), 1);
    assert!(handshakes.try_recv().is_err());
}

#[test]
fn our_own_certificate_is_sent() {
    let (port, _handshakes) = peer(&OWN, Some(&CLIENT));
    let mut settings = TlsSettings::default();
    run(async {
        let connector = Arc::new(TlsConnector::new(&settings).unwrap());
        let options = options(&connector, "peer.test");
        // The peer refuses after it has seen that no certificate was sent: the first read shows it.
        if let Ok(connection) = Connection::open(&picked(port), &options, 0).await {
            let _ = connection.write_all(b"ping", PATIENCE_MS).await;
            let read = connection.read(&mut Vec::new(), 4, PATIENCE_MS).await;
            assert!(read.is_err());
        }
    });
    settings.identity = Some(Arc::new(certified(&CLIENT)));
    run(async {
        let connector = Arc::new(TlsConnector::new(&settings).unwrap());
        let options = options(&connector, "peer.test");
        let connection = Connection::open(&picked(port), &options, 0).await.unwrap();
        assert_eq!(ping(&connection).await, b"pong");
    });
}

#[test]
fn other_protocols_fail_and_silence_times_out() {
    let plain = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = plain.local_addr().unwrap().port();
    let connector = Arc::new(TlsConnector::new(&TlsSettings::default()).unwrap());
    run(async {
        let mut options = options(&connector, "peer.test");
        if let Some(tls) = &mut options.tls {
            tls.timeout_ms = 1;
        }
        let error = Connection::open(&picked(port), &options, 0).await.err();
        assert!(matches!(error, Some(ConnectError::HandshakeTimedOut)));
    });
    std::thread::spawn(move || {
        let _silent = plain.accept();
        let (mut socket, _) = plain.accept().unwrap();
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        let _ = socket.read(&mut [0; 4096]);
        drop(plain.accept()); // the third is closed at once
    });
    run(async {
        let options = options(&connector, "peer.test");
        let error = Connection::open(&picked(port), &options, 0).await.err();
        assert!(
            matches!(error, Some(ConnectError::Handshake(_))),
            "{error:?}"
        );
        let error = Connection::open(&picked(port), &options, 0).await.err();
        assert!(
            matches!(error, Some(ConnectError::HandshakeBroken(_))),
            "{error:?}"
        );
    });
}

#[test]
fn our_closure_alert_is_sent() {
    let chain = vec![CertificateDer::from_pem_slice(OWN.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(OWN.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut session = ServerConnection::new(config).unwrap();
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        let mut came = Vec::new();
        // An end without the alert is an error here.
        stream.read_to_end(&mut came).unwrap();
        came
    });
    let connector = Arc::new(TlsConnector::new(&TlsSettings::default()).unwrap());
    run(async {
        let options = options(&connector, "peer.test");
        let connection = Connection::open(&picked(port), &options, 0).await.unwrap();
        connection.write_all(b"request", PATIENCE_MS).await.unwrap();
    });
    assert_eq!(serving.join().unwrap(), b"request");
}

#[test]
fn large_responses_are_complete_and_a_cut_is_detected() {
    const BYTES: usize = 1 << 20;
    let chain = vec![CertificateDer::from_pem_slice(OWN.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(OWN.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut session = ServerConnection::new(config).unwrap();
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        let mut upload = vec![0; BYTES];
        stream.read_exact(&mut upload).unwrap();
        stream.write_all(&upload).unwrap();
        stream.flush().unwrap(); // and closes without a word
    });
    let connector = Arc::new(TlsConnector::new(&TlsSettings::default()).unwrap());
    run(async {
        let options = options(&connector, "peer.test");
        let connection = Connection::open(&picked(port), &options, 0).await.unwrap();
        let upload: Vec<u8> = (0..BYTES).map(|index| (index % 251) as u8).collect();
        connection.write_all(&upload, PATIENCE_MS).await.unwrap();
        let mut answer = Vec::new();
        while answer.len() < BYTES {
            let read = connection.read(&mut answer, 100_000, PATIENCE_MS).await;
            assert!(read.unwrap() > 0);
        }
        assert!(answer == upload);
        let end = connection.read(&mut answer, 1, PATIENCE_MS).await;
        assert_eq!(end.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn impossible_settings_are_refused() {
    let verify = TlsSettings {
        verify: true,
        ..TlsSettings::default()
    };
    let versions = TlsSettings {
        versions: Some(Vec::new()),
        ..TlsSettings::default()
    };
    let error = |settings| TlsConnector::new(&settings).err().unwrap();
    assert!(matches!(error(verify), TlsError::Trusted(_)));
    assert!(matches!(error(versions), TlsError::NoVersion));
}
