//! Words found, and words that only look like them.

use std::path::Path;

#[test]
fn words() {
    let cases = [
        (concat!("see /wo", "rk/notes"), 1),
        (concat!("target/wo", "rk/a"), 0),
        (concat!("// TO", "DO: later"), 1),
        (concat!("MAX_TO", "DO_COUNT"), 0),
        ("a line of prose", 0),
    ];
    for (line, expected) in cases {
        assert_eq!(
            super::check(Path::new("a.md"), line).len(),
            expected,
            "{line}"
        );
    }
}

#[test]
fn data_is_left_alone() {
    assert!(!super::applies(Path::new("fuzz/corpus/head/1")));
    assert!(super::applies(Path::new("README.md")));
}
