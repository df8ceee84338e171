//! Tests with a request and responses of OpenSSL's.

use super::*;

const REQUEST: &[u8] = include_bytes!("req.der");
const GOOD: &[u8] = include_bytes!("good.der");
const REVOKED: &[u8] = include_bytes!("revoked.der");
const ISSUER: &[u8] = include_bytes!("issuer.der");
const END: &[u8] = include_bytes!("end.der");

/// SHA-1 of the issuer's name and key.
const NAME: [u8; SHA1_BYTES] = [
    0x6e, 0x09, 0xb4, 0x3b, 0xe9, 0x0d, 0x6c, 0x39, 0x67, 0xc8, 0xdb, 0x16, 0x56, 0xd2, 0x60, 0xec,
    0x12, 0xe9, 0x31, 0x23,
];
const KEY: [u8; SHA1_BYTES] = [
    0xb1, 0xef, 0x38, 0x44, 0x6f, 0x6c, 0xda, 0x59, 0xfa, 0x05, 0xb0, 0x4b, 0xda, 0x40, 0x45, 0x18,
    0x57, 0x1f, 0xcc, 0xee,
];

fn id() -> CertificateId {
    CertificateId {
        issuer_name: NAME,
        issuer_key: KEY,
        serial: vec![0x10, 0x01],
    }
}

#[test]
fn a_request_is_the_same_as_openssls() {
    assert_eq!(id().request(), REQUEST);
    assert_eq!(
        Certificate::read(END).map(|end| end.serial.to_vec()),
        Some(id().serial)
    );
}

#[test]
fn responses_say_the_state() {
    for (der, state) in [(GOOD, State::Good), (REVOKED, State::Revoked)] {
        let response = Response::read(der).expect("OpenSSL's response");
        let [single] = &response.responses[..] else {
            panic!("{response:?}");
        };
        assert_eq!(single.id, Some(id()));
        assert_eq!(single.state, state);
        assert!(single.next_update_s > Some(single.this_update_s));
        assert_eq!(response.certificates, [ISSUER]);
        let issuer = Certificate::read(ISSUER).expect("a certificate");
        assert!(response.responder.is(&issuer, &KEY));
        let end = Certificate::read(END).expect("a certificate");
        assert!(!response.responder.is(&end, &NAME));
    }
}

#[test]
fn refusals_are_told_from_what_is_malformed() {
    let cases: [(&[u8], Refusal); 5] = [
        (b"\x30\x03\x0a\x01\x06", Refusal::Status(6)),
        (b"\x30\x03\x0a\x01\x00", Refusal::Malformed),
        (b"\x30\x04\x0a\x02\x00\x01", Refusal::Malformed),
        (b"\x30", Refusal::Malformed),
        (&GOOD[..GOOD.len() - 1], Refusal::Malformed),
    ];
    for (der, refusal) in cases {
        assert_eq!(Response::read(der), Err(refusal), "{}", der.escape_ascii());
    }
}
