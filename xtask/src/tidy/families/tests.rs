//! Tests of families that name each other.

use std::path::{Path, PathBuf};

const LIST: &str = "
    mod one; mod two; mod three; mod common; mod pass; mod upstream;
    pub const FAMILIES: &[Family] = &[one::FAMILY, // why
        two::HTTP, upstream::FAMILY];
    pub const STREAM_FAMILIES: &[a::Family] = &[three::stream::FAMILY,];
    fn finish() { common::shared::end(); }";

/// A file, its text, and the families that it must not name.
const CASES: &[(&str, &str, &str)] = &[
    ("one/plan.rs", "use crate::one::A;", ""),
    ("one.rs", "use crate::{one, common};", ""),
    ("one/plan.rs", "use crate::two::A;", "two"),
    (
        "one/plan.rs",
        "use crate::{common::{two}, three::B};",
        "three",
    ),
    ("one/plan.rs", "fn f() { crate::two::g() }", "two"),
    (
        "one/plan.rs",
        "// crate::two::A\nlet a = \"crate::two::A\";",
        "",
    ),
    ("one/plan.rs", "use super::two; use other::two::A;", ""),
    (
        "common/shared.rs",
        "use crate::one::A;\nuse crate::two::A;",
        "one two",
    ),
    ("pass/plan.rs", "use crate::upstream::A;", ""),
    ("common/own_request.rs", "use crate::upstream::A;", ""),
    ("one/plan.rs", "use crate::upstream::A;", "upstream"),
    ("lib.rs", "use crate::one::A;", ""),
];

#[test]
fn families_name_no_other() {
    for (name, text, expected) in CASES {
        let list = PathBuf::from("crates/modules/src/lib.rs");
        let file = Path::new("crates/modules/src").join(name);
        let read = |path: &Path| {
            if path == list {
                Some(LIST.to_owned())
            } else {
                Some((*text).to_owned())
            }
        };
        let found = super::check(std::slice::from_ref(&file), &read);
        let found: Vec<&str> = found
            .iter()
            .filter_map(|one| one.text.split([' ', ':']).nth(4))
            .collect();
        assert_eq!(found.join(" "), *expected, "{name}: {text}");
    }
}

#[test]
fn families_say_what_they_have_in_one_place() {
    let cases = [
        ("one/mod.rs", 0),
        ("one/stream.rs", 0),
        ("one.rs", 0),
        ("one/plan.rs", 1),
        ("one/handler.rs", 1),
    ];
    for (name, expected) in cases {
        let file = Path::new("crates/modules/src").join(name);
        let read = |path: &Path| {
            if path.ends_with("lib.rs") {
                Some(LIST.to_owned())
            } else {
                Some("const FAMILY: Family = Family::NONE;".to_owned())
            }
        };
        let found = super::check(std::slice::from_ref(&file), &read);
        assert_eq!(found.len(), expected, "{name}");
    }
}

#[test]
fn the_list_makes_nothing_else_public() {
    for (more, count) in [
        ("", 0),
        ("pub(crate) fn four() {}", 0),
        ("pub mod one;", 1),
        ("pub use one::One; pub fn two() {}", 2),
    ] {
        let found = super::check(&[], &|_| Some(format!("{LIST}{more}")));
        assert_eq!(found.len(), count, "{more}");
    }
}

#[test]
fn a_module_is_a_family_or_what_families_have_in_common() {
    for (more, count) in [
        ("", 0),
        ("mod four;", 1),
        ("pub(crate) mod four; mod five;", 2),
    ] {
        let found = super::check(&[], &|_| Some(format!("{LIST}{more}")));
        assert_eq!(found.len(), count, "{more}");
    }
}

#[test]
fn a_list_that_is_not_found_is_a_finding() {
    let found = super::check(&[], &|_| None);
    assert_eq!(found.len(), 1);
}

#[test]
fn each_family_is_named_where_its_tests_are() {
    let all = "// also two\nmod one;\nmod three;\n/// also upstream\nmod shared;";
    for (tests, missing) in [
        (all.to_owned(), 0),
        (all.replace("also two", "also twofold"), 1),
        (String::new(), 4),
    ] {
        let read = |path: &Path| {
            if path.ends_with("lib.rs") {
                Some(LIST.to_owned())
            } else {
                Some(tests.clone())
            }
        };
        assert_eq!(super::untested(&read).len(), missing, "{tests}");
    }
}
