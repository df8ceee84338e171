#![allow(clippy::unwrap_used)]

use turnpike_wire::message::{Known, Method};

use crate::pass::conditions::{Failure, NextConditions};
use crate::pass::early_hints::knows_hints;
use crate::pass::names::Names;
use crate::pass::target::{PassUrl, UrlError};

/// A URL, and its scheme, host, port and path.
const URLS: &[(&str, &str, &str, &str, &str)] = &[
    ("http://a", "http://", "a", "80", ""),
    ("HTTP://a:80/b", "HTTP://", "a", "80", "/b"),
    ("http://a:81/b?c", "http://", "a:81", "81", "/b?c"),
    ("http://a?c", "http://", "a", "80", "/?c"),
    ("https://a:443", "https://", "a", "443", ""),
    ("https://a:80/", "https://", "a:80", "80", "/"),
    ("http://[::1]:8080/", "http://", "[::1]:8080", "8080", "/"),
    ("http://unix:/run/a", "http://", "localhost", "", ""),
    ("http://unix:/run/a:/b", "http://", "localhost", "", "/b"),
];

#[test]
fn urls_are_taken_apart() {
    for (text, scheme, host, port, path) in URLS {
        let url = PassUrl::parse(text).unwrap();
        assert_eq!(url.scheme, scheme.as_bytes(), "{text}");
        assert_eq!(url.host, host.as_bytes(), "{text}");
        assert_eq!(url.port, port.as_bytes(), "{text}");
        assert_eq!(url.path, path.as_bytes(), "{text}");
    }
}

#[test]
fn what_is_no_url_is_refused() {
    assert_eq!(PassUrl::parse("ftp://a"), Err(UrlError::Prefix));
    assert_eq!(PassUrl::parse(""), Err(UrlError::Prefix));
    for (text, what) in [
        ("http://", "no host"),
        ("http://a:0", "invalid port"),
        ("http://a:x/", "invalid port"),
        ("http://unix:", "no path in the unix domain socket"),
    ] {
        let error = PassUrl::parse(text).unwrap_err();
        assert!(
            matches!(error, UrlError::Address(is, _) if is == what),
            "{text}: {error:?}"
        );
    }
}

/// Conditions, a failure, the method, whether something was sent, and whether another server may
/// be asked.
const NEXT: &[(&str, Failure, Method, bool, bool)] = &[
    ("error timeout", Failure::Error, Method::Get, true, true),
    (
        "error timeout",
        Failure::InvalidHeader,
        Method::Get,
        true,
        false,
    ),
    ("error", Failure::Error, Method::Post, false, true),
    ("error", Failure::Error, Method::Post, true, false),
    ("error", Failure::Error, Method::Patch, true, false),
    ("error", Failure::Error, Method::Other, true, false),
    ("error", Failure::Error, Method::Put, true, true),
    (
        "error non_idempotent",
        Failure::Error,
        Method::Post,
        true,
        true,
    ),
    ("http_503", Failure::Status(503), Method::Get, true, true),
    ("http_503", Failure::Status(502), Method::Get, true, false),
    ("http_404", Failure::Status(200), Method::Get, true, false),
    ("error off", Failure::Error, Method::Get, true, false),
    ("error", Failure::NoLive, Method::Get, false, false),
];

#[test]
fn conditions_say_who_may_be_asked_again() {
    for (words, failure, method, sent, allowed) in NEXT {
        let conditions = NextConditions::of(words.split(' '));
        let found = conditions.allow(*failure, *method, *sent);
        assert_eq!(found, *allowed, "{words} {failure:?} {method:?} {sent}");
    }
}

#[test]
fn names_are_known_in_any_case() {
    let mut names = Names::default();
    names.add(b"X-Own");
    names.add(b"server");
    assert!(names.has(Known::Other, b"x-OWN"));
    assert!(names.has(Known::Server, b"Server"));
    assert!(!names.has(Known::Date, b"Date"));
    names.remove(b"x-own");
    names.remove(b"Server");
    assert!(!names.has(Known::Other, b"X-Own"));
    assert!(!names.has(Known::Server, b"Server"));
}

#[test]
fn hints_are_for_browsers_that_open_a_page_over_http2_or_later() {
    let cases = [
        (true, Some("navigate"), true),
        (true, Some("no-cors"), false),
        (true, None, false),
        (false, Some("navigate"), false),
        (false, None, false),
    ];
    for (multiplexed, mode, expected) in cases {
        let knows = knows_hints(multiplexed, mode.map(str::as_bytes));
        assert_eq!(knows, expected, "{multiplexed} {mode:?}");
    }
}
