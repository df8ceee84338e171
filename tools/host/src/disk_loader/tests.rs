//! Files and folders on disk, as `include` finds them.

#![allow(clippy::unwrap_used)]

use std::fs;

use turnpike_conf::parse;

use super::{DiskLoader, expand};

#[test]
fn the_paths_that_match_a_pattern_are_listed_in_order() {
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

#[test]
fn a_folder_is_no_file() {
    let error = parse(&DiskLoader, "/proc/self".as_ref(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pread() \"/proc/self\" failed (21: Is a directory)"
    );
}
