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
    (
        "crates/http/src/h1/a.rs",
        "pub use turnpike_wire::h1::StatusLine;",
        1,
    ),
    (
        "crates/http/src/h1/a.rs",
        "pub(crate) use turnpike_wire::{Span, h1};",
        1,
    ),
    (
        "crates/http/src/h1/a.rs",
        "use turnpike_wire::h1::{self, A as B}; pub use h1::C;",
        1,
    ),
    (
        "crates/http/src/h1/a.rs",
        "use turnpike_wire::h1::{A as B}; pub type C = Option<B>;",
        1,
    ),
    (
        "crates/http/src/h1/a.rs",
        "use turnpike_wire::h1::A; pub struct C(A); pub use crate::h1::D;",
        0,
    ),
    ("crates/wire/src/message/a.rs", "pub use crate::h1::A;", 1),
    ("crates/wire/src/lib.rs", "pub mod h1; pub use h1::A;", 1),
    ("crates/wire/src/lib.rs", "pub mod h1; use h1::A;", 0),
    ("crates/wire/src/h1/mod.rs", "pub use crate::message::A;", 0),
    ("crates/wire/src/h1/mod.rs", "pub use super::h1::a::A;", 0),
];

#[test]
fn walled_modules_are_named_inside_only() {
    for (file, text, expected) in CASES {
        let found = super::check(Path::new(file), &Source::scan(text));
        assert_eq!(found.len(), *expected, "{text} in {file}");
    }
}
