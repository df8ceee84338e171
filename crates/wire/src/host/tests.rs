use super::*;

/// A text, and its name and port; `None` if it is refused.
const TABLE: &[(&str, Option<(&str, u16)>)] = &[
    ("", None),
    ("l", Some(("l", 0))),
    ("L", Some(("L", 0))),
    ("abcd-ef.g02.xyz:", Some(("abcd-ef.g02.xyz", 0))),
    ("123.40.56.78:987", Some(("123.40.56.78", 987))),
    ("www.abcd-ef.g02.xyz.", Some(("www.abcd-ef.g02.xyz", 0))),
    ("abcd-ef.g02.xyz.:88", Some(("abcd-ef.g02.xyz", 88))),
    ("example.com.:1.2", None),
    (".", None),
    (":80", None),
    (".:80", None),
    (".a", Some((".a", 0))),
    (
        "AbC-d93.0.34ZhGt-s.nk.Ru:88",
        Some(("AbC-d93.0.34ZhGt-s.nk.Ru", 88)),
    ),
    ("h:65535", Some(("h", 65535))),
    ("h:65536", None),
    ("123.49.0.78:98777", None),
    ("123.40.56.78:9000:80", None),
    (
        "[abcd::ef98:0:7654:321]",
        Some(("[abcd::ef98:0:7654:321]", 0)),
    ),
    (
        "[abcd::ef98:0:7654:321]:80",
        Some(("[abcd::ef98:0:7654:321]", 80)),
    ),
    ("[::ffff:12.30.67.89]", Some(("[::ffff:12.30.67.89]", 0))),
    (
        "[v0aF.!$&'()*+,;=-._~AbZ9:]",
        Some(("[v0aF.!$&'()*+,;=-._~AbZ9:]", 0)),
    ),
    ("example.com/\\:552", None),
    ("\\e/xample.com", None),
    ("..examp-LE.com", None),
    ("com.exa-m.45..:", None),
    ("[abcd::e\\f98:0/:7654:321]", None),
    ("[abcd::ef98:0:7654:321].", None),
    ("[abcd::ef98:0:7654:321].:98", None),
    ("[ab..cd::ef98:0:7654:321]", None),
    ("extra[abcd::ef98:0:7654:321]:98", None),
    ("[abcd::ef98:0:7654:321", None),
    ("[", None),
    ("[]", Some(("[]", 0))),
    ("[%25]", None),
    ("a%25b_~", Some(("a%25b_~", 0))),
    ("localhost\u{2}", None),
    ("local host", None),
    ("user@host", None),
];

#[test]
fn hosts_are_taken_and_refused_as_in_nginx() {
    for (text, expected) in TABLE {
        let host = validate(text.as_bytes()).ok();
        assert_eq!(
            host.map(|host| (&text[..host.len], host.port)),
            *expected,
            "{text:?}"
        );
        if let (Some(host), Some((name, _))) = (host, expected) {
            assert_eq!(
                host.upper,
                name.bytes().any(|b| b.is_ascii_uppercase()),
                "{text:?}"
            );
        }
    }
}

#[test]
fn lower_case_touches_letters_only() {
    let mut out = Vec::new();
    lower_case(b"AbC-9.[_~Z]", &mut out);
    assert_eq!(out, b"abc-9.[_~z]");
}
