//! Tests of adding, replacing and removing fields, with every lookup.

use super::*;

/// Names and values.
type Pairs<'a> = &'a [(&'a str, &'a str)];

fn fields(all: Pairs<'_>) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in all {
        fields.add(name.as_bytes(), value.as_bytes());
    }
    fields
}

fn listed(fields: &Fields) -> Vec<(&str, &str)> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or("?");
    let all = fields.iter();
    all.map(|(name, value)| (text(name), text(value))).collect()
}

const ALL: Pairs<'static> = &[("A", "1"), ("Bc", ""), ("a", "two"), ("ETag", "4")];

#[test]
fn removed_fields_are_gone() {
    let cases: [(&str, Pairs<'_>); 5] = [
        ("none", ALL),
        ("Age", ALL),
        ("a", &[("Bc", ""), ("ETag", "4")]),
        ("bC", &[("A", "1"), ("a", "two"), ("ETag", "4")]),
        ("etag", &[("A", "1"), ("Bc", ""), ("a", "two")]),
    ];
    for (removed, left) in cases {
        let mut by_name = fields(ALL);
        by_name.remove(removed.as_bytes());
        let mut by_test = fields(ALL);
        by_test.retain(|entry| !entry.name.eq_ignore_ascii_case(removed.as_bytes()));
        for found in [by_name, by_test] {
            assert_eq!(listed(&found), left, "{removed}");
            assert_eq!(found.value(removed.as_bytes()), None, "{removed}");
            assert_eq!(found.len(), left.len(), "{removed}");
            let tag = left.iter().any(|(name, _)| *name == "ETag");
            assert_eq!(found.known(Known::Etag).is_some(), tag, "{removed}");
        }
    }
}

#[test]
fn a_replaced_field_keeps_its_place() {
    let cases: [(&str, Pairs<'_>); 3] = [
        ("A", &[("A", "new"), ("Bc", ""), ("ETag", "4")]),
        (
            "eTag",
            &[("A", "1"), ("Bc", ""), ("a", "two"), ("eTag", "new")],
        ),
        (
            "Age",
            &[
                ("A", "1"),
                ("Bc", ""),
                ("a", "two"),
                ("ETag", "4"),
                ("Age", "new"),
            ],
        ),
    ];
    for (name, expected) in cases {
        let mut found = fields(ALL);
        found.replace(name.as_bytes(), b"new");
        assert_eq!(listed(&found), expected, "{name}");
        assert_eq!(found.value(name.as_bytes()), Some(&b"new"[..]), "{name}");
    }
}

#[test]
fn a_set_field_stands_once_and_a_copy_is_the_same() {
    let mut first = fields(&[("A", "1"), ("B", "2"), ("a", "3"), ("Vary", "x")]);
    first.set(b"A", b"4");
    assert_eq!(listed(&first), [("B", "2"), ("Vary", "x"), ("A", "4")]);
    assert_eq!(first.values(b"a").collect::<Vec<_>>(), [b"4"]);
    let mut second = fields(&[("C", "5")]);
    second.copy(&first);
    assert_eq!(listed(&second), listed(&first));
    assert_eq!(second.known(Known::Vary), Some(&b"x"[..]));
    second.clear();
    assert!(second.is_empty() && second.known(Known::Vary).is_none());
    assert_eq!(fields(&[("A", "1")]), fields(&[("A", "1")]));
    assert_ne!(fields(&[("A", "1")]), fields(&[("A", "2")]));
}

#[test]
fn controls_are_found_in_names_and_values() {
    let cases = [
        ("A", "1\t2", false),
        ("A", "1\r\nB: 2", true),
        ("A", "\u{7f}", true),
        ("A\n", "1", true),
    ];
    for (name, value, expected) in cases {
        let all = [("B", "1"), (name, value)];
        assert_eq!(fields(&all).hold_control(), expected, "{all:?}");
    }
}
