//! Tests of the arguments of `open_file_cache`.

use super::check_open_file_cache;

/// Arguments, and what is wrong with them; empty if nothing is.
const CASES: &[(&str, &str)] = &[
    ("off", ""),
    ("max=1", ""),
    ("max=1000 inactive=20s", ""),
    ("inactive=1m max=10", ""),
    ("inactive=0 max=10", ""),
    ("max=10 max=20", ""),
    ("off inactive=20s", ""),
    ("max=10 off", ""),
    (
        "inactive=20s",
        "\"open_file_cache\" must have the \"max\" parameter",
    ),
    ("max=0", "invalid \"open_file_cache\" parameter \"max=0\""),
    ("max=", "invalid \"open_file_cache\" parameter \"max=\""),
    ("max=-1", "invalid \"open_file_cache\" parameter \"max=-1\""),
    ("max=1k", "invalid \"open_file_cache\" parameter \"max=1k\""),
    (
        "max=10 inactive=",
        "invalid \"open_file_cache\" parameter \"inactive=\"",
    ),
    (
        "max=10 inactive=soon",
        "invalid \"open_file_cache\" parameter \"inactive=soon\"",
    ),
    (
        "max=10 valid=1s",
        "invalid \"open_file_cache\" parameter \"valid=1s\"",
    ),
    (
        "max=10 OFF",
        "invalid \"open_file_cache\" parameter \"OFF\"",
    ),
    ("on", "invalid \"open_file_cache\" parameter \"on\""),
    ("1000", "invalid \"open_file_cache\" parameter \"1000\""),
];

#[test]
fn arguments_are_checked_as_nginx_does() {
    for (text, expected) in CASES {
        let words: Vec<&str> = text.split(' ').collect();
        let wrong = check_open_file_cache("open_file_cache", &words).err();
        let wrong = wrong.map(String::from);
        assert_eq!(wrong.unwrap_or_default(), *expected, "{text}");
    }
}
