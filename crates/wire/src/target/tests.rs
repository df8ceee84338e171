#![allow(clippy::unwrap_used)]

use super::*;

/// Raw path, normal form with merged slashes, normal form with all slashes.
const TABLE: &[(&str, &str, &str)] = &[
    ("/", "/", "/"),
    ("/index.html", "/index.html", "/index.html"),
    ("/a.b/c..d/e...", "/a.b/c..d/e...", "/a.b/c..d/e..."),
    ("//", "/", "//"),
    ("/foo//bar", "/foo/bar", "/foo//bar"),
    ("/foo//../bar", "/bar", "/foo/bar"),
    ("/foo///../bar", "/bar", "/foo//bar"),
    ("/foo/bar/.", "/foo/bar/", "/foo/bar/"),
    ("/foo/bar/..", "/foo/", "/foo/"),
    ("/foo/bar/./x", "/foo/bar/x", "/foo/bar/x"),
    ("/foo/bar/../x", "/foo/x", "/foo/x"),
    ("/a/b/../../c", "/c", "/c"),
    ("/a/..", "/", "/"),
    ("/.", "/", "/"),
    ("/./", "/", "/"),
    ("/.hidden", "/.hidden", "/.hidden"),
    ("/..hidden", "/..hidden", "/..hidden"),
    ("/...", "/...", "/..."),
    ("/a/...", "/a/...", "/a/..."),
    ("/.%2e%2Fx", "!", "!"),
    ("/a/%2e%2e/x", "/x", "/x"),
    ("/a%2F%2fb", "/a/b", "/a//b"),
    ("/%41%c3%A9", "/A\u{e9}", "/A\u{e9}"),
    ("/a%20b", "/a b", "/a b"),
    ("/%25%23%3F", "/%#?", "/%#?"),
    ("/%2541", "/%41", "/%41"),
    ("/.%25", "/.%", "/.%"),
    ("/..%3f/x", "/..?/x", "/..?/x"),
    ("/%02", "/\u{2}", "/\u{2}"),
    ("/%00", "!", "!"),
    ("/a%", "!", "!"),
    ("/a%1", "!", "!"),
    ("/a%1g", "!", "!"),
    ("/%%41", "!", "!"),
    ("/..", "!", "!"),
    ("/../", "!", "!"),
    ("/../a", "!", "!"),
    ("/a/../..", "!", "!"),
    ("/a//../..", "!", "/"),
];

#[test]
fn paths_are_normalised_as_in_nginx() {
    for (path, merged, kept) in TABLE {
        for (merge_slashes, expected) in [(true, merged), (false, kept)] {
            let mut out = b"before".to_vec();
            let found = match normalise(path.as_bytes(), merge_slashes, &mut out) {
                Ok(Normal::Clean) => {
                    assert_eq!(out, b"before");
                    path.as_bytes().to_vec()
                }
                Ok(Normal::Rewritten) => out[6..].to_vec(),
                Err(_) => {
                    assert_eq!(out, b"before");
                    b"!".to_vec()
                }
            };
            // The table writes bytes above ASCII as the characters of Latin 1.
            let expected: Vec<u8> = match *expected {
                "/A\u{e9}" => b"/A\xc3\xa9".to_vec(),
                text => text.as_bytes().to_vec(),
            };
            assert_eq!(found, expected, "{path} {merge_slashes}");
        }
    }
}

#[test]
fn each_error_is_reported() {
    let table: &[(&str, TargetError)] = &[
        ("/%zz", TargetError::InvalidEscape),
        ("/%00", TargetError::Nul),
        ("/..", TargetError::AboveRoot),
    ];
    for (path, expected) in table {
        assert_eq!(
            normalise(path.as_bytes(), true, &mut Vec::new()),
            Err(*expected),
            "{path}"
        );
    }
}

#[test]
fn escapes_by_place() {
    let all: Vec<u8> = (0..=255).collect();
    let table: &[(Escape, &str)] = &[
        (Escape::Path, "!$&'()*+,-./0123456789:;=@[]_~"),
        (Escape::Args, "!$'()*,-./0123456789:=@[]_~"),
        (Escape::Component, "-.0123456789_~"),
        (Escape::Html, "!$&()*+,-./0123456789:;=?@[]_~"),
        (Escape::Refresh, "!#$%&()*+,-./0123456789:;=?@[]_}"),
    ];
    for (place, expected) in table {
        let stays = |byte: &u8| !needs_escaping(&[*byte], *place) && !byte.is_ascii_alphabetic();
        let kept: Vec<u8> = all.iter().copied().filter(stays).collect();
        assert_eq!(std::str::from_utf8(&kept).unwrap(), *expected, "{place:?}");
    }
    let mut out = Vec::new();
    escape(b"/a b?\xe9%", Escape::Path, &mut out);
    assert_eq!(out, b"/a%20b%3F%E9%25");
    assert!(!needs_escaping(b"\xe9?#", Escape::Memcached));
    assert!(needs_escaping(b"a b", Escape::Memcached));
}

#[test]
fn escaped_targets_lose_only_bytes_that_would_end_them() {
    let text = b"/a b\t\r\n\0\x7f\xe9%20?#";
    for (place, expected) in [
        (Escape::Controls, &b"/a b%09%0D%0A%00%7F\xe9%20?#"[..]),
        (Escape::Target, b"/a%20b%09%0D%0A%00%7F\xe9%20?#"),
    ] {
        let mut out = Vec::new();
        escape(text, place, &mut out);
        assert_eq!(out, expected, "{place:?}");
    }
}
