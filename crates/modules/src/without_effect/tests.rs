//! What is checked, row by row.

use turnpike_conf::{Row, Value};

use super::{http2, others};

fn rows() -> impl Iterator<Item = &'static Row> {
    let tables = [http2::ROWS, http2::QUIC, others::ROWS, others::MODULES];
    tables.into_iter().flatten()
}

#[test]
fn what_would_have_an_effect_is_not_here() {
    for name in ["sub_filter", "slice", "mp4", "flv"] {
        assert!(rows().all(|row| row.name != name), "{name}");
    }
}

/// A directive, its arguments, and nginx's words for what is wrong with them.
const CASES: &[(&str, &[&str], &str)] = &[
    ("aio", &["threads=pool"], ""),
    ("aio", &["sometimes"], "invalid value"),
    ("directio", &["4m"], ""),
    (
        "directio",
        &["soon"],
        "\"directio\" directive invalid value",
    ),
];

#[test]
fn arguments_are_checked_as_nginx_does() {
    for (name, words, expected) in CASES {
        let row = rows().find(|row| row.name == *name).expect(name);
        let Value::Checked(check) = row.value else {
            panic!("{name} is not checked by a function");
        };
        let complaint = check(name, words).err().map(String::from);
        let complaint = complaint.unwrap_or_default();
        assert_eq!(complaint, *expected, "{name} {words:?}");
    }
}
