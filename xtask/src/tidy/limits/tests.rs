//! Each ceiling, on both of its sides.

use std::path::Path;

use super::super::scanner::Source;

fn findings(file: &str, text: &str) -> Vec<String> {
    let found = super::check(Path::new(file), text, &Source::scan(text));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn ceilings() {
    let body = |lines: usize| format!("//! m\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
    let line = |columns: usize| format!("//! {}\n", "x".repeat(columns - 4));
    let file = |lines: usize| format!("//! m\n{}", "\n".repeat(lines - 1));
    let cases = [
        (body(70), ""),
        (body(71), "a.rs:2: fn f has 71 lines, at most 70"),
        (line(100), ""),
        (line(101), "a.rs:1: 101 columns, at most 100"),
        (file(800), ""),
        (file(801), "a.rs:801: 801 lines in a file, at most 800"),
    ];
    for (text, expected) in cases {
        assert_eq!(findings("a.rs", &text).join("\n"), expected);
    }
}

#[test]
fn forbidden_forms() {
    let unsafe_block = "//! m\nfn f() { unsafe { g() } }\n";
    assert_eq!(findings("crates/lane/src/sys/a.rs", unsafe_block), [""; 0]);
    assert_eq!(findings("crates/http/src/a.rs", unsafe_block).len(), 1);
    assert_eq!(
        findings("a.rs", "//! m\nfn f() { todo!() }\n"),
        ["a.rs:2: todo! is left"]
    );
    assert_eq!(findings("a.rs", "fn f() {}\n").len(), 1);
}

#[test]
fn widths_of_pages() {
    let wide = "a ".repeat(56);
    let cases = [
        (format!("{wide}\n"), 1),
        (format!("```\n{wide}\n```\n"), 0),
        (format!("```\n```\n{wide}\n"), 1),
        (format!("| {wide} |\n"), 0),
        (format!("    {wide}\n"), 0),
        (format!("## Findings\n{wide}\n"), 0),
        ("ü".repeat(111), 0),
    ];
    for (text, expected) in cases {
        let found = super::page(Path::new("a.md"), &text);
        assert_eq!(found.len(), expected, "{text}");
    }
}
