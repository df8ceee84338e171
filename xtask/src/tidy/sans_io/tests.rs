//! Paths to input and output, and those that are none.

use std::path::Path;

use super::super::scanner::Source;

const CASES: &[(&str, &str, usize)] = &[
    ("crates/wire/src/a.rs", "use std::fs;", 1),
    ("crates/wire/src/a.rs", "use std::fs::File;", 1),
    ("crates/conf/src/a/b.rs", "use std::{fs, thread};", 2),
    ("crates/conf/src/a.rs", "use std::{io, time::Instant};", 1),
    ("crates/wire/src/a.rs", "use std::os::unix::fs::X;", 1),
    ("crates/wire/src/a.rs", "use std::os::unix::{ffi, net};", 1),
    ("crates/wire/src/a.rs", "use std::net::IpAddr;", 1),
    (
        "crates/wire/src/a.rs",
        "fn f() { std::thread::yield_now() }",
        1,
    ),
    ("crates/wire/src/a.rs", "use nix::fcntl::open;", 1),
    ("crates/wire/src/a.rs", "fn f() { tokio::spawn(a) }", 1),
    ("crates/wire/src/a.rs", "use core::net::IpAddr;", 0),
    ("crates/wire/src/a.rs", "use core::time::Duration;", 0),
    (
        "crates/wire/src/a.rs",
        "use std::os::unix::ffi::OsStrExt;",
        0,
    ),
    (
        "crates/wire/src/a.rs",
        "use std::io; use std::path::Path;",
        0,
    ),
    (
        "crates/wire/src/a.rs",
        "use super::net; use crate::time;",
        0,
    ),
    ("crates/wire/src/a.rs", "fn process(time: u64) {}", 0),
    ("crates/lane/src/a.rs", "use std::fs::File;", 0),
];

#[test]
fn only_what_reaches_a_system_is_found() {
    for (file, text, count) in CASES {
        let findings = super::check(Path::new(file), &Source::scan(text));
        assert_eq!(findings.len(), *count, "{text}: {findings:?}");
    }
}
