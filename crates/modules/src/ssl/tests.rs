//! What is read of the directives.

use turnpike_conf::Value;

use super::ciphers::{Chosen, choose, choose_tls13};
use super::rows::HTTP;

/// A directive, its arguments, and nginx's words for what is wrong with them.
const CASES: &[(&str, &[&str], &str)] = &[
    ("ssl", &["off"], ""),
    (
        "ssl",
        &["on"],
        "the \"ssl\" directive is obsolete, use the \"listen ... ssl\" directive instead",
    ),
    ("ssl_session_cache", &["builtin:1000", "shared:SSL:10m"], ""),
    ("ssl_session_cache", &["none"], ""),
    (
        "ssl_session_cache",
        &["shared:SSL"],
        "invalid session cache \"shared:SSL\"",
    ),
    (
        "ssl_session_cache",
        &["shared::1m"],
        "invalid session cache \"shared::1m\"",
    ),
    (
        "ssl_session_cache",
        &["shared:a:8k"],
        "session cache \"shared:a:8k\" is too small",
    ),
    ("ssl_ocsp_cache", &["shared:a:1m"], ""),
    ("ssl_ocsp_cache", &["on"], "invalid OCSP cache \"on\""),
];

#[test]
fn arguments_are_checked_as_nginx_does() {
    for (name, words, expected) in CASES {
        let row = HTTP.iter().find(|row| row.name == *name).expect(name);
        let Value::Checked(check) = row.value else {
            panic!("{name} is not checked by a function");
        };
        let complaint = check(name, words).err().map(String::from);
        let complaint = complaint.unwrap_or_default();
        assert_eq!(complaint, *expected, "{name} {words:?}");
    }
}

const ECDSA_256: &str = "ECDHE-ECDSA-AES256-GCM-SHA384";
const RSA_256: &str = "ECDHE-RSA-AES256-GCM-SHA384";
const ECDSA_CHACHA: &str = "ECDHE-ECDSA-CHACHA20-POLY1305";
const RSA_CHACHA: &str = "ECDHE-RSA-CHACHA20-POLY1305";
const ECDSA_128: &str = "ECDHE-ECDSA-AES128-GCM-SHA256";
const RSA_128: &str = "ECDHE-RSA-AES128-GCM-SHA256";

/// A list, and the suites of TLS 1.2 that openssl-ciphers(1) makes of it, as far as they are there.
const LISTS: &[(&str, &[&str])] = &[
    (
        "HIGH:!aNULL:!MD5",
        &[
            ECDSA_256,
            RSA_256,
            ECDSA_CHACHA,
            RSA_CHACHA,
            ECDSA_128,
            RSA_128,
        ],
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305",
        &[ECDSA_128, RSA_128, RSA_CHACHA],
    ),
    (
        "EECDH+AESGCM:EDH+AESGCM",
        &[ECDSA_256, RSA_256, ECDSA_128, RSA_128],
    ),
    (
        "!aNULL:kECDH+AESGCM:ECDH+AESGCM:RSA+AESGCM",
        &[ECDSA_256, RSA_256, ECDSA_128, RSA_128],
    ),
    ("ECDHE+aRSA+AES128", &[RSA_128]),
    ("ALL:!AESGCM", &[ECDSA_CHACHA, RSA_CHACHA]),
    ("ALL:!AESGCM:AES", &[ECDSA_CHACHA, RSA_CHACHA]),
    (
        "ALL:-AES:AES128",
        &[ECDSA_CHACHA, RSA_CHACHA, ECDSA_128, RSA_128],
    ),
    (
        "CHACHA20:AES:+CHACHA20:!ECDSA",
        &[RSA_256, RSA_128, RSA_CHACHA],
    ),
    ("AES128:AES256:@STRENGTH:!ECDSA", &[RSA_256, RSA_128]),
    ("DEFAULT@SECLEVEL=0:!AES:!aRSA", &[ECDSA_CHACHA]),
    ("kRSA:RC4:!LOW", &[]),
];

#[test]
fn lists_of_cipher_suites_mean_what_openssl_makes_of_them() {
    for (list, expected) in LISTS {
        assert_eq!(choose(list).suites, *expected, "{list}");
    }
}

#[test]
fn what_is_not_there_is_told_apart_from_what_means_nothing() {
    let chosen = choose("ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:DHE:SECURE:@BEST");
    let expected = Chosen {
        suites: vec![RSA_128],
        not_there: vec!["DHE-RSA-AES128-GCM-SHA256".to_owned()],
        unknown: vec!["SECURE".to_owned(), "@BEST".to_owned()],
    };
    assert_eq!(chosen, expected);
    let two = choose_tls13("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256");
    assert_eq!(two.map(|suites| suites.len()), Ok(2));
    let none = choose_tls13("TLS_AES_128_CCM_SHA256").map(|suites| suites.len());
    assert_eq!(none, Err("TLS_AES_128_CCM_SHA256".to_owned()));
}
