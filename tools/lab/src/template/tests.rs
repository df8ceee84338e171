#![allow(clippy::unwrap_used)]

use super::*;

fn values(pairs: &[(&str, &str)]) -> Values {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn names_are_filled_in_and_other_braces_stay() {
    let values = values(&[("port", "80"), ("root", "/srv")]);
    let cases = [
        ("listen {port};", "listen 80;"),
        ("events { }", "events { }"),
        ("location / { root {root}; }", "location / { root /srv; }"),
        ("~ ^/[a-z]{2}$", "~ ^/[a-z]{2}$"),
        ("{port}{port}", "8080"),
        ("{", "{"),
        ("", ""),
    ];
    for (template, filled) in cases {
        assert_eq!(fill(template, &values).unwrap(), filled, "{template}");
    }
}

#[test]
fn an_unknown_name_is_reported_with_its_place() {
    let error = fill("listen {prot};", &values(&[("port", "80")])).unwrap_err();
    assert_eq!(error.offset(), 7);
    assert_eq!(error.to_string(), "no value for {prot}");
}

#[test]
fn values_may_name_values_but_not_themselves() {
    let resolved = resolve(&values(&[("a", "{b}!"), ("b", "{c}"), ("c", "x")])).unwrap();
    assert_eq!(resolved["a"], "x!");
    let circle = resolve(&values(&[("a", "{b}"), ("b", "{a}")])).unwrap_err();
    assert!(matches!(circle, TemplateError::Circle { .. }), "{circle:?}");
}
