//! Patterns as glob(3) reads them.

use std::path::Path;

use crate::glob::{matches, matches_path};

#[test]
fn one_part() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("*", &["a", "abc", "a.b"], &[".a"]),
        (
            "*.conf",
            &["a.conf", "a.b.conf"],
            &["a.conf~", ".conf", "conf"],
        ),
        (".*", &[".a", "."], &["a"]),
        ("a?c", &["abc", "a?c"], &["ac", "abbc"]),
        (
            "a*b*c",
            &["abc", "axxbxxc", "abbcc"],
            &["ab", "acb", "abcd"],
        ),
        ("[ab]x", &["ax", "bx"], &["cx", "x"]),
        ("[!ab]x", &["cx"], &["ax"]),
        ("[^ab]x", &["cx"], &["ax"]),
        ("[a-c]", &["a", "b", "c"], &["d", "-"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[]a]", &["]", "a"], &["b"]),
        ("[a", &["[a"], &["a"]),
        ("a\\*", &["a*"], &["ab"]),
        ("[\\]]", &["]"], &["\\"]),
        ("[", &["["], &["a"]),
    ];
    for (pattern, matching, others) in table {
        for name in *matching {
            assert!(
                matches(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
        for name in *others {
            assert!(
                !matches(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
    }
    let hard = "a*".repeat(50) + "b";
    assert!(!matches(hard.as_bytes(), "a".repeat(2000).as_bytes()));
}

#[test]
fn whole_paths() {
    let table = [
        ("/etc/*.conf", "/etc/a.conf", true),
        ("/etc/*.conf", "/etc/b/a.conf", false),
        ("/etc/*/*.conf", "/etc/b/a.conf", true),
        ("/*", "/etc/b", false),
    ];
    for (pattern, path, expected) in table {
        assert_eq!(
            matches_path(Path::new(pattern), Path::new(path)),
            expected,
            "{pattern} {path}"
        );
    }
}
