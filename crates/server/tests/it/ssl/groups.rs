//! The group of the key exchange: X25519MLKEM768, which is safe from quantum computers too, with
//! every client that has it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::HandshakeKind::{self, Full, FullWithHelloRetryRequest};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, NamedGroup};

use crate::support::tls::{keys, start};
use crate::support::tls_peer;

/// Directives, the groups of a client, and the group that is agreed upon: by its number, by
/// OpenSSL's name, and by what kind of handshake.
type Case = (
    &'static str,
    &'static [&'static dyn SupportedKxGroup],
    NamedGroup,
    &'static str,
    HandshakeKind,
);

const CASES: &[Case] = &[
    (
        "",
        &[X25519MLKEM768, X25519, SECP256R1],
        NamedGroup::X25519MLKEM768,
        "X25519MLKEM768",
        Full,
    ),
    ("", &[X25519, SECP256R1], NamedGroup::X25519, "X25519", Full),
    ("", &[SECP256R1], NamedGroup::secp256r1, "prime256v1", Full),
    (
        "ssl_ecdh_curve auto;",
        &[X25519MLKEM768, SECP256R1],
        NamedGroup::X25519MLKEM768,
        "X25519MLKEM768",
        Full,
    ),
    // The client's first guess is another group.
    (
        "ssl_ecdh_curve X25519MLKEM768;",
        &[SECP384R1, X25519MLKEM768],
        NamedGroup::X25519MLKEM768,
        "X25519MLKEM768",
        FullWithHelloRetryRequest,
    ),
    (
        "ssl_ecdh_curve prime256v1:X25519;",
        &[X25519MLKEM768, SECP256R1],
        NamedGroup::secp256r1,
        "prime256v1",
        FullWithHelloRetryRequest,
    ),
];

#[test]
fn the_group_is_the_best_that_both_have() {
    let keys = keys();
    for (directives, groups, group, name, kind) in CASES {
        let block = format!(
            "server {{ %SECURE% {directives} location / {{ return 200 \"[$ssl_curve]\"; }} }}"
        );
        let server = start(&keys, &block);
        let config = tls_peer::client_of(CryptoProvider {
            kx_groups: groups.to_vec(),
            ..default_provider()
        });
        let asked = ServerName::try_from("a.test").unwrap();
        let mut session = ClientConnection::new(Arc::new(config), asked).unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let agreed = session.negotiated_key_exchange_group().unwrap();
        assert_eq!(agreed.name(), *group, "{directives} {groups:?}");
        assert_eq!(
            session.handshake_kind(),
            Some(*kind),
            "{directives} {groups:?}"
        );
        assert!(answer.ends_with(&format!("[{name}]")), "{answer}");
    }
}
