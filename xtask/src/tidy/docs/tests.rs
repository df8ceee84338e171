//! Tests of sources, and their findings.

use std::path::Path;

#[test]
fn sources() {
    let cases = [
        ("pub fn f() {}", 1),
        ("/// Does it.\npub fn f() {}", 0),
        ("/// Does it.\n#[must_use]\npub fn f() {}", 0),
        ("/// Does it.\n#[derive(\n    Clone\n)]\npub struct S;", 0),
        ("#[must_use]\npub fn f() {}", 1),
        ("/// A field.\npub a: u8,\npub b: u8,", 0),
        ("pub(crate) fn f() {}", 0),
        ("pub const unsafe fn f() {}", 1),
        ("pub const MAX: usize = 1;", 1),
        ("pub mod m;\npub use m::*;", 0),
        ("/// It is what it is.\npub fn f() {}", 1),
        ("/// The sum.\n/// It is what it is.\npub fn f() {}", 0),
        ("/// Who asks.\nfn f() {}", 1),
        ("/// Whoever asks.\nfn f() {}", 1),
        ("/// Nobody's.\nfn f() {}", 1),
        ("/// Somebody's turn.\nfn f() {}", 1),
        ("/// A lane's turn.\nfn f() {}", 0),
        ("//! It is what it is.", 1),
        ("//! A module.\n//! It is what it is.", 0),
        ("//! A module.\n//!\n//! It is what it is.", 1),
    ];
    for (text, expected) in cases {
        let file = Path::new("crates/a.rs");
        let mut findings = super::subjects(file, text);
        findings.extend(super::described(file, text));
        assert_eq!(findings.len(), expected, "{text}: {findings:?}");
    }
}

#[test]
fn half_sentences() {
    let cases = [
        ("/// A list of\n/// the names.", 0),
        ("/// A list.\n/// The names.", 0),
        ("/// A list.\n/// the names.", 1),
        ("//! A list.\n//! the names.", 1),
        ("//! A list.\n//! nginx has none.", 0),
        ("/// A list.\nlet a = 1;", 0),
        ("/// Of 1 to ...\n/// many.", 0),
    ];
    for (text, expected) in cases {
        let findings = super::halves(Path::new("crates/a.rs"), text);
        assert_eq!(findings.len(), expected, "{text}: {findings:?}");
    }
}

#[test]
fn clauses_are_counted() {
    let text = "/// What is sent.\nfn a() {}\n/// The answer.\n/// What is sent.\nfn b() {}\n\
                /// Whatsoever.\nfn c() {}\n/// Where it is.\nfn d() {}";
    assert_eq!(super::count_clauses(text), 2);
    assert!(super::clauses(super::CLAUSES_MAX).is_none());
    assert!(super::clauses(super::CLAUSES_MAX + 1).is_some());
}
