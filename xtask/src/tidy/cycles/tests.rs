//! Small crates, by their files, and the cycles that they have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Cycles, components, find, slack_in};

/// The cycles of a crate with these files, given as name and text.
fn cycles(files: &[(&str, &str)]) -> Cycles {
    let texts: BTreeMap<PathBuf, &str> = files
        .iter()
        .map(|(file, text)| (Path::new("c/src").join(file), *text))
        .collect();
    let paths: Vec<PathBuf> = texts.keys().cloned().collect();
    let mut found = find(&paths, &|file| {
        texts.get(file).map(|text| (*text).to_owned())
    });
    assert_eq!(found.len(), 1, "one crate");
    found.remove(0)
}

/// Members of all cycles, each cycle's joined by spaces.
fn members(files: &[(&str, &str)]) -> Vec<String> {
    let names = |cycle: &super::Cycle| {
        let names: Vec<&str> = cycle.members.iter().map(|one| one.name.as_str()).collect();
        names.join(" ")
    };
    cycles(files).cycles.iter().map(names).collect()
}

/// A crate and its cycles.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        "two files name each other",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::A;"),
        ],
        &["crate::a crate::b"],
    ),
    (
        "one way only",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", ""),
        ],
        &[],
    ),
    (
        "a path in code counts as a use line does",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "fn f() -> u8 { crate::b::g() }"),
            ("b.rs", "fn g(x: &super::a::A) {}"),
        ],
        &["crate::a crate::b"],
    ),
    (
        "super leads to the parent, which uses its child",
        &[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; use b::B; struct A;"),
            ("a/b.rs", "use super::A;"),
        ],
        &["crate::a crate::a::b"],
    ),
    (
        "a mod line alone is no edge",
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b; struct A;"),
            ("a/b.rs", "use super::A;"),
        ],
        &[],
    ),
    (
        "a re-export is an edge, and its user names the parent",
        &[
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "mod b; mod c; pub(crate) use b::B; pub use c::C;",
            ),
            ("a/b.rs", "struct B;"),
            ("a/c.rs", "use super::B;"),
        ],
        &["crate::a crate::a::c"],
    ),
    (
        "a sibling named through super is no edge to the parent",
        &[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; mod c; use c::C;"),
            ("a/b.rs", ""),
            ("a/c.rs", "use super::b::B;"),
        ],
        &[],
    ),
    (
        "lists, globs and renames",
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::{b::{self as other, X}, c::*};"),
            ("b.rs", "use crate::d::{Y as Z};"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ],
        &["crate::a crate::b crate::c crate::d"],
    ),
    (
        "a module's short name leads where it is used",
        &[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use crate::b::{self, inner}; fn f() { b::deep::g(); inner::h() }",
            ),
            ("b/mod.rs", "mod deep; mod inner;"),
            ("b/deep.rs", "use crate::a::A;"),
            ("b/inner.rs", ""),
        ],
        &["crate::a crate::b::deep"],
    ),
    (
        "a short name that is not used is no edge, a public one is",
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::a::A;"),
            ("c.rs", "pub use crate::d;"),
            ("d.rs", "use crate::c::C;"),
        ],
        &["crate::c crate::d"],
    ),
    (
        "inline modules are modules",
        &[(
            "lib.rs",
            "mod a { use crate::b::B; } mod b { fn f() { super::a::g() } }",
        )],
        &["crate::a crate::b"],
    ),
    (
        "what is for tests only has no edges",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            (
                "b.rs",
                "#[cfg(test)] use crate::a::A; #[cfg(test)] #[allow(x)] fn f() { crate::a::g() } \
                 #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ],
        &[],
    ),
    (
        "what follows test code counts again",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            (
                "b.rs",
                "struct S { #[cfg(test)] x: [u8; 2], y: crate::a::A }",
            ),
        ],
        &["crate::a crate::b"],
    ),
    (
        "comments, strings, visibilities, other crates and crate-wide macros",
        &[
            ("lib.rs", "mod a; mod b; use b::B;"),
            ("a.rs", "use crate::b::B;"),
            (
                "b.rs",
                "// use crate::a::A;\n const X: &str = \"crate::a::A\"; pub(in crate::a) fn f() {} \
                 use ::a::A; use other::a::A; fn g() { crate::rows!(a) } \
                 fn h() -> impl A + use<'_> {}",
            ),
        ],
        &[],
    ),
    (
        "two cycles, the bigger first",
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "use crate::a::X;"),
            ("c.rs", "use crate::d::X;"),
            ("d.rs", "use crate::e::X;"),
            ("e.rs", "use crate::{c::X, a::X};"),
        ],
        &["crate::c crate::d crate::e", "crate::a crate::b"],
    ),
];

#[test]
fn cycles_of_small_crates() {
    for (name, files, expected) in CASES {
        assert_eq!(members(files), *expected, "{name}");
    }
}

#[test]
fn an_edge_has_its_first_line() {
    let found = cycles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "\nuse crate::b::B;\nuse crate::b::C;"),
        ("b.rs", "fn f() {\n\n    crate::a::g()\n}"),
    ]);
    let edges: Vec<_> = found.cycles[0]
        .members
        .iter()
        .map(|one| &one.edges)
        .collect();
    assert_eq!(edges[0], &[("crate::b".to_owned(), 2)]);
    assert_eq!(edges[1], &[("crate::a".to_owned(), 3)]);
}

#[test]
fn a_cycle_above_the_ceiling_is_a_finding_that_names_its_members() {
    let names: Vec<String> = (0..=super::GOAL).map(|index| format!("m{index}")).collect();
    let mut files = vec![("lib.rs".to_owned(), String::new())];
    for (index, name) in names.iter().enumerate() {
        files[0].1.push_str(&format!("mod {name};"));
        let next = &names[(index + 1) % names.len()];
        files.push((format!("{name}.rs"), format!("use crate::{next}::X;")));
    }
    let mut borrowed: Vec<(&str, &str)> = files
        .iter()
        .map(|(file, text)| (file.as_str(), text.as_str()))
        .collect();
    let findings = super::check(&[cycles(&borrowed)]);
    assert_eq!(findings.len(), 1);
    let text = &findings[0].text;
    assert!(
        text.starts_with("an import cycle of 7 modules, at most 6: crate::m0, "),
        "{text}"
    );

    borrowed.pop();
    assert_eq!(super::check(&[cycles(&borrowed)]), []);
}

#[test]
fn a_ceiling_that_is_too_high_is_reported() {
    let found = [cycles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::a::A;"),
    ])];
    let cases = [
        (2, 0, ""),
        (9, 1, "has 2 modules, the ceiling is 9: remove its row"),
    ];
    for (ceiling, count, expected) in cases {
        let sentences = slack_in(&found, &[("c", ceiling)]);
        assert_eq!(sentences.len(), count, "ceiling {ceiling}");
        assert!(sentences.concat().contains(expected), "{sentences:?}");
    }
}

#[test]
fn components_of_graphs() {
    type Lists<'a> = &'a [&'a [usize]];
    let cases: [(Lists, Lists); 5] = [
        (&[], &[]),
        (&[&[]], &[&[0]]),
        (&[&[1], &[0]], &[&[0, 1]]),
        (&[&[1], &[2], &[]], &[&[2], &[1], &[0]]),
        (&[&[1], &[2], &[0, 3], &[4], &[3]], &[&[3, 4], &[0, 1, 2]]),
    ];
    for (edges, expected) in cases {
        let edges: Vec<Vec<usize>> = edges.iter().map(|to| to.to_vec()).collect();
        assert_eq!(
            components::strongly_connected(&edges),
            expected,
            "{edges:?}"
        );
    }
}
