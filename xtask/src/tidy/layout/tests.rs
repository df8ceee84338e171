//! Modules and what is inside them.

use std::path::PathBuf;

use super::check;

#[test]
fn a_module_with_others_inside_is_in_their_folder() {
    for (files, count) in [
        (
            &["src/a.rs", "src/a/tests.rs", "src/b/mod.rs", "src/b/c.rs"][..],
            0,
        ),
        (&["src/a.rs", "src/a/b.rs"], 1),
        (&["src/a.rs", "src/a/b/c.rs", "src/ab.rs"], 1),
        (
            &[
                "src/tests.rs",
                "src/tests/b.rs",
                "src/a.rs",
                "src/a/page.html",
            ],
            1,
        ),
    ] {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        assert_eq!(check(&files).len(), count, "{files:?}");
    }
}
