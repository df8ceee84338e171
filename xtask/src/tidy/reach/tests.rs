//! Where modules may lie, by the kinds of files that declare them.

use std::path::{Path, PathBuf};

#[test]
fn modules_lie_where_rust_looks() {
    let cases = [
        ("c/src/lib.rs", "mod a;", "c/src/a.rs c/src/a/mod.rs"),
        (
            "c/src/a.rs",
            "mod tests;",
            "c/src/a/tests.rs c/src/a/tests/mod.rs",
        ),
        (
            "c/src/a/mod.rs",
            "pub(crate) mod b;",
            "c/src/a/b.rs c/src/a/b/mod.rs",
        ),
        (
            "c/src/lib.rs",
            "mod a { mod b; } mod c {}",
            "c/src/a/b.rs c/src/a/b/mod.rs",
        ),
        ("c/src/lib.rs", "// mod a;\nmod b {}", ""),
        (
            "c/tests/x.rs",
            "#[path = \"y/z.rs\"] mod z;",
            "c/tests/y/z.rs c/tests/z.rs c/tests/z/mod.rs",
        ),
    ];
    for (file, text, expected) in cases {
        let expected: Vec<PathBuf> = expected.split_whitespace().map(PathBuf::from).collect();
        assert_eq!(
            super::children(Path::new(file), text),
            expected,
            "{file}: {text}"
        );
    }
}
