//! Patterns as glob(3) reads them.

use std::fs;
use std::path::Path;

use crate::glob::{expand, matches, matches_path};

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

#[test]
fn the_disk() {
    let folder = std::env::temp_dir().join(format!("turnpike-glob-{}", std::process::id()));
    for name in ["b/2.conf", "a/1.conf", "a/2.txt", "a/.3.conf", "a-/4.conf"] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x;").unwrap();
    }
    let found = |pattern: &str| -> Vec<String> {
        let paths = expand(&folder.join(pattern));
        let short = paths.iter().map(|path| path.strip_prefix(&folder).unwrap());
        short
            .map(|path| path.to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(found("*/*.conf"), ["a-/4.conf", "a/1.conf", "b/2.conf"]);
    assert_eq!(found("*/1.conf"), ["a/1.conf"]);
    assert_eq!(found("a/[12].*"), ["a/1.conf", "a/2.txt"]);
    assert!(found("none/*").is_empty());
    fs::remove_dir_all(&folder).unwrap();
}
