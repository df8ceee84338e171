//! Toolchains as rustup lists them.

use super::{is_version, toolchain_of};

const INSTALLED: &str = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                         nightly-x86_64-unknown-linux-gnu\n\
                         1.95.0-x86_64-unknown-linux-gnu\n\
                         1.9-x86_64-unknown-linux-gnu";

#[test]
fn a_toolchain_has_the_whole_version() {
    for (version, name) in [
        ("1.95", Some("1.95.0-x86_64-unknown-linux-gnu")),
        ("1.95.0", Some("1.95.0-x86_64-unknown-linux-gnu")),
        ("1.9", Some("1.9-x86_64-unknown-linux-gnu")),
        ("1.94", None),
        ("", None),
    ] {
        assert_eq!(toolchain_of(INSTALLED, version), name, "{version:?}");
    }
}

#[test]
fn the_compiler_in_use_may_be_the_oldest() {
    let printed = "rustc 1.95.0 (59807616e 2026-04-14)";
    for (version, is) in [
        ("1.95", true),
        ("1.95.0", true),
        ("1.9", false),
        ("", false),
    ] {
        assert_eq!(is_version(printed, version), is, "{version:?}");
    }
}
