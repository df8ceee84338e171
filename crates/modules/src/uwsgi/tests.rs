use super::origin::{parse_url, write_param};

#[test]
fn names_and_values_stand_behind_their_lengths() {
    let mut out = Vec::new();
    assert!(write_param(b"A", b"", &mut out));
    assert!(write_param(b"BC", &[b'd'; 258], &mut out));
    assert_eq!(out[..9], *b"\x01\0A\0\0\x02\0BC");
    assert_eq!(out[9..12], *b"\x02\x01d");
    assert!(!write_param(b"A", &[b'd'; 65536], &mut out));
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
