//! Tests of code that gives a descriptor, and of code that only takes one.

use std::path::Path;

use super::super::scanner::Source;

const CASES: &[(&str, &str, &str)] = &[
    ("http/src/a.rs", "pub fn f(&self) -> BorrowedFd<'_> {}", "f"),
    ("http/src/a.rs", "pub fn f() -> Option<Transport>;", "f"),
    ("http/src/a.rs", "pub(crate) fn f() -> RawFd {}", ""),
    ("http/src/a.rs", "fn f() -> RawFd {}", ""),
    (
        "http/src/a.rs",
        "pub fn f(socket: OwnedFd) -> u32 { let a: RawFd; }",
        "",
    ),
    ("http/src/a.rs", "pub fn f(g: fn(u8) -> RawFd) { a }", ""),
    (
        "http/src/a.rs",
        "pub struct A { pub a: u8, pub b: Rc<OwnedFd>, }",
        "b",
    ),
    (
        "http/src/a.rs",
        "pub struct A { pub a: Map<A, B>, b: OwnedFd }",
        "",
    ),
    ("http/src/a.rs", "impl AsFd for A {}", "AsFd"),
    ("http/src/a.rs", "impl<T: AsFd> Look for A<T> {}", ""),
    ("http/src/a.rs", "fn f(a: impl AsFd) { for b in c {} }", ""),
    (
        "modules/src/a.rs",
        "impl std::os::fd::AsRawFd for A {}",
        "AsRawFd",
    ),
    ("http/src/h1/a.rs", "pub fn f() -> RawFd {}", ""),
    ("stream/src/a.rs", "pub fn f(&self) -> &Waited {}", "f"),
    (
        "modules/src/a.rs",
        "pub enum A { Transport(Transport) }",
        "",
    ),
    (
        "stream/src/a.rs",
        "pub enum A { B { c: u8 }, D(OwnedFd) }",
        "A",
    ),
    (
        "stream/src/a.rs",
        "pub enum A { B } pub fn f(a: OwnedFd) {}",
        "",
    ),
    ("stream/src/a.rs", "enum A { D(OwnedFd) }", ""),
    ("http/src/a.rs", "pub struct A(u8, pub OwnedFd);", "A"),
    (
        "http/src/a.rs",
        "pub struct A(OwnedFd, pub(crate) RawFd);",
        "",
    ),
    ("http/src/a.rs", "pub type A = Transport;", "A"),
    ("http/src/a.rs", "type A = Transport;", ""),
    (
        "http/src/a.rs",
        "impl Deref for A { type Target = Transport; }",
        "Target",
    ),
    ("http/src/a.rs", "impl From<A> for OwnedFd {}", "OwnedFd"),
    (
        "http/src/a.rs",
        "pub trait A { fn f(&self, a: OwnedFd); fn g() -> RawFd; }",
        "A",
    ),
    (
        "http/src/a.rs",
        "pub trait A { fn f(&self, a: OwnedFd); }",
        "",
    ),
    (
        "http/src/a.rs",
        "pub fn f(look: impl FnOnce(&Transport)) -> u8 {}",
        "f",
    ),
    ("modules/src/a.rs", "impl Receiver for A {}", "Receiver"),
    ("server/src/a.rs", "impl Protocol for A {}", "Protocol"),
    ("stream/src/a.rs", "impl Receiver for A {}", ""),
    (
        "http/src/connection/a.rs",
        "impl passed::Receiver for A {}",
        "",
    ),
    ("lane/src/a.rs", "pub fn f() -> RawFd {}", ""),
];

#[test]
fn exports_of_descriptors() {
    for (file, text, expected) in CASES {
        let file = Path::new("crates").join(file);
        let found = super::check(&file, &Source::scan(text));
        let found: Vec<&str> = found
            .iter()
            .filter_map(|one| one.text.split(' ').next())
            .collect();
        assert_eq!(found.join(" "), *expected, "{text}");
    }
}
