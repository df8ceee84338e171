//! Certificates: which are good, and whom the API server trusts while one follows another.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use super::{LIFE, Pair, RENEWAL, is_good, issue, unix_s};

fn names() -> Vec<String> {
    vec!["webhook.ingress.svc".to_owned()]
}

#[test]
fn a_certificate_is_good_for_its_names_and_its_time() {
    let pair = issue(&names(), b"").unwrap();
    let now_s = unix_s(SystemTime::now());
    let hour = Duration::from_hours(1);
    let after = |time: Duration| now_s + time.as_secs();
    let other = vec!["other.svc".to_owned()];
    let cases: &[(&str, bool, bool)] = &[
        ("now", is_good(&pair, &names(), now_s), true),
        (
            "clocks that differ",
            is_good(&pair, &names(), now_s - hour.as_secs()),
            true,
        ),
        (
            "soon renewed",
            is_good(&pair, &names(), after(LIFE - RENEWAL)),
            true,
        ),
        ("ended", is_good(&pair, &names(), after(LIFE + hour)), false),
        ("another name", is_good(&pair, &other, now_s), false),
    ];
    for (what, came, expected) in cases {
        assert_eq!(came, expected, "{what}");
    }
}

#[test]
fn what_is_no_pair_is_not_good() {
    let pair = issue(&names(), b"").unwrap();
    let now_s = unix_s(SystemTime::now());
    let garbage = b"garbage".to_vec();
    let cases: &[(&str, Pair)] = &[
        ("nothing", Pair::default()),
        (
            "no key",
            Pair {
                key: garbage.clone(),
                ..pair.clone()
            },
        ),
        (
            "no certificate",
            Pair {
                certificate: garbage,
                ..pair.clone()
            },
        ),
        (
            "no authority",
            Pair {
                authorities: Vec::new(),
                ..pair
            },
        ),
    ];
    for (what, pair) in cases {
        assert!(!is_good(pair, &names(), now_s), "{what}");
    }
}

#[test]
fn two_authorities_are_trusted_and_never_three() {
    let mut before = Vec::new();
    for expected in [1, 2, 2] {
        let pair = issue(&names(), &before).unwrap();
        let text = String::from_utf8(pair.authorities.clone()).unwrap();
        assert_eq!(text.matches("BEGIN CERTIFICATE").count(), expected);
        before = pair.authorities;
    }
}
