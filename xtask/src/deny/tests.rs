//! Licence expressions, versions and the rules file.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Rules, findings, is_allowed, major, rules};

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn licence_expressions() {
    let allowed = set(&[
        "MIT",
        "Apache-2.0",
        "Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
    ]);
    let cases = [
        ("MIT", true),
        ("", false),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND (GPL-2.0 OR LGPL-2.1)", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("MIT WITH LLVM-exception", false),
        ("(MIT", false),
        ("MIT MIT", false),
    ];
    for (expression, expected) in cases {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn majors() {
    for (version, expected) in [("1.2.3", "1"), ("0.4.0", "0.4"), ("0.0.3-a+b", "0.0.3")] {
        assert_eq!(major(version), expected);
    }
}

#[test]
fn rules_are_read() {
    let text = concat!(
        "[licenses]\nallow = [\n  # why\n  \"MIT\",\n  \"ISC\",\n]\n",
        "[bans]\nskip = [\n  { crate = \"syn\", reason = \"both\" },\n]\n",
    );
    let expected = Rules {
        licenses: set(&["ISC", "MIT"]),
        twice: set(&["syn"]),
    };
    assert_eq!(rules(text), expected);
}

#[test]
fn sources_and_duplicates() {
    let package = |name: &str, version: &str, source: Option<&str>| {
        let license = "MIT";
        json!({ "name": name, "version": version, "license": license, "source": source })
    };
    let metadata = json!({ "packages": [
        package("ours", "0.1.0", None),
        package("a", "1.0.0", Some(super::REGISTRY)),
        package("a", "2.0.0", Some(super::REGISTRY)),
        package("b", "1.0.0", Some("git+https://example.org/b")),
    ] });
    let rules = Rules {
        licenses: set(&["MIT"]),
        twice: set(&["c"]),
    };
    let expected = [
        "b 1.0.0: comes from git+https://example.org/b",
        "a: there in 1 and 2, no reason in deny.toml",
        "deny.toml: c is no longer there twice",
    ];
    assert_eq!(findings(&metadata, &rules), expected);
}
