//! Tests of what directives say; orders are tested with servers.

#![allow(clippy::unwrap_used)]

use super::account::{base64url, pkcs8_of};
use super::challenges::{HTTP_PATH, Published, asked_name, http_answer};
use super::order::is_token;

#[test]
fn a_token_is_answered_while_it_is_published() {
    let path = [HTTP_PATH, b"token"].concat();
    assert_eq!(http_answer(&path), None);
    let published = Published::http("token", "token.thumbprint");
    assert_eq!(http_answer(&path).unwrap(), b"token.thumbprint");
    assert_eq!(http_answer(b"/token"), None);
    drop(published);
    assert_eq!(http_answer(&path), None);
}

#[test]
fn tokens_are_base64url() {
    for token in ["evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA", "a_b"] {
        assert!(is_token(token), "{token}");
    }
    for token in ["", "a=", "a+b", "a/b", "..", "a b", "a%2fb", "\u{e4}"] {
        assert!(!is_token(token), "{token}");
    }
}

#[test]
fn keys_of_authorities_are_base64url() {
    let cases: [(&str, Option<&[u8]>); 5] = [
        ("_-8", Some(&[0xff, 0xef])),
        ("_-8=", Some(&[0xff, 0xef])),
        ("AAAA", Some(&[0, 0, 0])),
        ("A", None),
        ("a b", None),
    ];
    for (text, expected) in cases {
        assert_eq!(base64url(text.as_bytes()).as_deref(), expected, "{text}");
    }
}

#[test]
fn an_accounts_key_is_of_p256() {
    assert!(pkcs8_of(b"garbage").is_err());
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let der = pkcs8_of(key.serialize_pem().as_bytes()).unwrap();
    assert!(instant_acme::Key::from_pkcs8_der(der.as_slice().into()).is_ok());
    let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    assert!(pkcs8_of(other.serialize_pem().as_bytes()).is_err());
}

#[test]
fn addresses_are_asked_for_by_their_reverse_names() {
    let cases = [
        ("A.test", "a.test"),
        ("192.0.2.1", "1.2.0.192.in-addr.arpa"),
        (
            "2001:db8::1",
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(asked_name(name), expected);
    }
}
