//! Taking a Referer field to pieces.

use super::handler::{path, without_scheme};

#[test]
fn a_scheme_and_a_host_are_needed() {
    let cases: &[(&str, Option<&str>)] = &[
        ("http://www.example.com/a", Some("www.example.com/a")),
        ("HTTPS://www.example.com", Some("www.example.com")),
        ("http://i.ru", Some("i.ru")),
        ("http://a", None),
        ("www.example.com", None),
        ("ftp://www.example.com", None),
        ("", None),
    ];
    for (referer, expected) in cases {
        let expected = expected.map(str::as_bytes);
        assert_eq!(without_scheme(referer.as_bytes()), expected, "{referer}");
    }
}

#[test]
fn the_path_begins_at_the_first_slash() {
    let cases = [
        ("example.com/a/b", "/a/b"),
        ("example.com:80/a", "/a"),
        ("example.com", ""),
    ];
    for (rest, expected) in cases {
        assert_eq!(path(rest.as_bytes()), expected.as_bytes(), "{rest}");
    }
}
