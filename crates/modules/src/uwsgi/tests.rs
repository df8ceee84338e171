use super::origin::{ParamPairs, parse_url};
use crate::pass::params::ParamWriter as _;

#[test]
fn names_and_values_stand_behind_their_lengths() {
    let mut out = Vec::new();
    let mut pairs = ParamPairs::default();
    pairs.write(b"A", b"", &mut out);
    pairs.write(b"BC", &[b'd'; 258], &mut out);
    assert!(!pairs.too_long);
    assert_eq!(out[..9], *b"\x01\0A\0\0\x02\0BC");
    assert_eq!(out[9..12], *b"\x02\x01d");
    pairs.write(b"A", &[b'd'; 65536], &mut out);
    assert!(pairs.too_long);
}

#[test]
fn addresses_may_name_the_protocol() {
    const CASES: &[(&str, &str, bool)] = &[
        ("127.0.0.1:1", "uwsgi://", false),
        ("uwsgi://127.0.0.1:1", "uwsgi://", false),
        ("suwsgi://127.0.0.1:1", "suwsgi://", true),
        ("SUWSGI://unix:/a", "suwsgi://", true),
        ("unix:/a", "uwsgi://", false),
    ];
    for (text, scheme, secure) in CASES {
        let url = parse_url(text).expect(text);
        assert_eq!(url.scheme, scheme.as_bytes(), "{text}");
        assert_eq!(url.secure, *secure, "{text}");
    }
    let url = parse_url("suwsgi://app.test:3031").expect("a name");
    assert_eq!(url.host, b"app.test:3031");
}
