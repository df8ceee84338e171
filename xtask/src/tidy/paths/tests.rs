//! Paths that lead to a walled module, and those that do not.

use std::path::Path;

use super::super::scanner::Source;

const CASES: &[(&str, &str, usize)] = &[
    ("crates/modules/src/a.rs", "use turnpike_wire::h1;", 1),
    (
        "crates/modules/src/a.rs",
        "use turnpike_wire::h1::Framing;",
        1,
    ),
    (
        "crates/modules/src/a.rs",
        "fn f() { turnpike_wire::h1::end(a) }",
        1,
    ),
    (
        "crates/modules/src/a.rs",
        "use turnpike_wire::{Span, h1, host};",
        1,
    ),
    (
        "crates/modules/src/a.rs",
        "use turnpike_wire::{h1::end, host};",
        1,
    ),
    (
        "crates/modules/src/a.rs",
        "use turnpike_wire::{host, h2::{h1}};",
        0,
    ),
    (
        "crates/modules/src/a.rs",
        "use turnpike_wire::message::Head; use a::h1;",
        0,
    ),
    (
        "crates/modules/src/a.rs",
        "use turnpike_http::h1::origin;",
        0,
    ),
    ("crates/http/src/h1/a.rs", "use turnpike_wire::h1;", 0),
    ("crates/http/src/a.rs", "use turnpike_wire::h1;", 1),
];

#[test]
fn walled_modules_are_named_inside_only() {
    for (file, text, expected) in CASES {
        let found = super::check(Path::new(file), &Source::scan(text));
        assert_eq!(found.len(), *expected, "{text} in {file}");
    }
}
