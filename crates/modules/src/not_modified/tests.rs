//! Tests of this family.

use super::handler::{Comparison, matches_tag};

#[test]
fn entity_tags_are_compared_by_strength() {
    let cases: &[(&str, &str, bool, bool)] = &[
        // list, own tag, strong, weak
        ("\"a\"", "\"a\"", true, true),
        ("*", "\"a\"", true, true),
        ("*", "", true, true),
        ("\"a\"", "", false, false),
        ("\"b\"", "\"a\"", false, false),
        ("\"b\", \"a\" , \"c\"", "\"a\"", true, true),
        ("\"b\",\t\"a\"", "\"a\"", true, true),
        ("W/\"a\"", "\"a\"", false, true),
        ("\"a\"", "W/\"a\"", false, true),
        ("W/\"a\"", "W/\"a\"", false, true),
        ("\"ab\"", "\"a\"", false, false),
        ("\"a\"x", "\"a\"", false, false),
        ("\"a", "\"a\"", false, false),
        ("", "\"a\"", false, false),
    ];
    for (list, etag, strong, weak) in cases {
        let found = |comparison| matches_tag(list.as_bytes(), etag.as_bytes(), comparison);
        assert_eq!(found(Comparison::Strong), *strong, "strong {list} {etag}");
        assert_eq!(found(Comparison::Weak), *weak, "weak {list} {etag}");
    }
}
