//! Fields: what is added stands on the wire as it is told.

use super::Fields;

/// Names and values.
type Pairs<'a> = &'a [(&'a str, &'a str)];

fn fields(all: Pairs<'_>) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in all {
        fields.add(name.as_bytes(), value.as_bytes());
    }
    fields
}

fn told(fields: &Fields) -> Vec<(&str, &str)> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or("?");
    let all = fields.iter();
    all.map(|(name, value)| (text(name), text(value))).collect()
}

#[test]
fn lines_are_those_of_the_fields_that_are_left() {
    let all = [("A", "1"), ("Bc", ""), ("a", "two"), ("D", "4")];
    let cases: [(&str, Pairs<'_>, &str); 4] = [
        ("none", &all, "A: 1\r\nBc: \r\na: two\r\nD: 4\r\n"),
        ("a", &[("Bc", ""), ("D", "4")], "Bc: \r\nD: 4\r\n"),
        (
            "bC",
            &[("A", "1"), ("a", "two"), ("D", "4")],
            "A: 1\r\na: two\r\nD: 4\r\n",
        ),
        (
            "d",
            &[("A", "1"), ("Bc", ""), ("a", "two")],
            "A: 1\r\nBc: \r\na: two\r\n",
        ),
    ];
    for (removed, left, lines) in cases {
        let mut fields = fields(&all);
        fields.remove(removed.as_bytes());
        assert_eq!(told(&fields), left, "{removed}");
        assert_eq!(fields.lines(), lines.as_bytes(), "{removed}");
    }
}

#[test]
fn a_set_field_stands_once_and_a_copy_is_the_same() {
    let mut first = fields(&[("A", "1"), ("B", "2"), ("a", "3")]);
    first.set(b"A", b"4");
    assert_eq!(told(&first), [("B", "2"), ("A", "4")]);
    assert_eq!(first.values(b"a").collect::<Vec<_>>(), [b"4"]);
    let mut second = fields(&[("C", "5")]);
    second.copy(&first);
    assert_eq!(told(&second), told(&first));
    second.clear();
    assert!(second.is_empty() && second.lines().is_empty());
}
