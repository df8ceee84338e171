//! Hellos of TLS clients: what they offer, and those whose lengths are wrong, which end their own
//! connection while others are served.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};

#[path = "support/tls.rs"]
mod tls_support;
use tls_support::{curl, keys, s_client, start};

/// The content type of an alert.
const ALERT: u8 = 0x15;

/// Bytes of the largest record.
const RECORD_BYTES_MAX: usize = 1 << 14;

/// A hello with one extension, in records. The extension and the list of extensions may say another
/// length than theirs.
fn hello(extension: &[u8], extension_length: usize, list_length: usize) -> Vec<u8> {
    let two = |length: usize| (length as u16).to_be_bytes();
    // The version, 32 random bytes, no session, one cipher suite, no compression.
    let before = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let kind = [0, 0x15];
    let after = [
        &two(list_length)[..],
        &kind,
        &two(extension_length),
        extension,
    ]
    .concat();
    let body = [before, after].concat();
    let length = (body.len() as u32).to_be_bytes();
    let message = [&[1, length[1], length[2], length[3]], &body[..]].concat();
    let record = |part: &[u8]| [&[0x16, 3, 1][..], &two(part.len()), part].concat();
    message.chunks(RECORD_BYTES_MAX).flat_map(record).collect()
}

#[test]
fn the_offered_signature_algorithms_are_a_variable() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% return 200 \"<$ssl_sigalgs>\"; }");
    let request = "GET / HTTP/1.0\r\n\r\n";
    let cases = [
        ("ECDSA+SHA256", "<ecdsa_secp256r1_sha256>"),
        (
            "RSA-PSS+SHA384:ECDSA+SHA256:RSA+SHA1",
            "<rsa_pss_rsae_sha384:ecdsa_secp256r1_sha256:rsa_pkcs1_sha1>",
        ),
    ];
    for (offered, expected) in cases {
        let output = s_client(&server, request, &["-tls1_2", "-sigalgs", offered]);
        assert!(output.contains(expected), "{output}");
    }
}

#[test]
fn hellos_with_wrong_lengths_end_their_own_connection() {
    let keys = keys();
    let server = start(&keys, "server { %SECURE% location / { return 200 here; } }");
    let cases = [
        (
            "an extension that is longer than the list",
            hello(&[0; 9], 60_000, 13),
        ),
        (
            "a list that is longer than the hello",
            hello(&[0; 9], 9, 60_000),
        ),
        (
            "a list that is shorter than its extension",
            hello(&[0; 9], 9, 5),
        ),
        ("an extension of 65 KB", hello(&[0; 65_000], 65_000, 65_004)),
        (
            "a hello of 16 MB",
            b"\x16\x03\x01\x00\x06\x01\xff\xff\xff\x03\x03".to_vec(),
        ),
    ];
    for (name, bytes) in cases {
        let failed = "SSL_do_handshake() failed (SSL: ";
        let before = server.log("error.log").matches(failed).count();
        let peer = server.connect();
        // The server may have closed it before all is sent.
        let _ = peer.stream().write_all(&bytes);
        let mut answer = Vec::new();
        let _ = peer.stream().read_to_end(&mut answer);
        assert!(
            answer.first().is_none_or(|first| *first == ALERT),
            "{name}: {answer:?}"
        );
        let logged = turnpike_testkit::wait_for(|| {
            let found = server.log("error.log").matches(failed).count();
            (found > before).then_some(())
        });
        assert!(logged.is_some(), "{name}: {}", server.log("error.log"));
        assert_eq!(curl(&server, "a.test", "/", &[]), "here", "{name}");
    }
}
