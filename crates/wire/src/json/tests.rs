#![allow(clippy::unwrap_used)]

use super::{JsonPath, JsonPathError, append_at};

/// The value at a path, with containers up to five deep.
fn at(text: &str, path: &str) -> Option<String> {
    let path = JsonPath::parse(path.as_bytes()).unwrap();
    let mut out = Vec::new();
    let found = append_at(text.as_bytes(), &path, 5, &mut out);
    found.then(|| String::from_utf8(out).unwrap())
}

#[test]
fn values_are_found_at_their_paths() {
    let cases: &[(&str, &str, Option<&str>)] = &[
        (r#"{"name":"John","age":30}"#, "name", Some("John")),
        (
            r#" { "name" : "John" , "age" : -3.5e+7 } "#,
            "age",
            Some("-3.5e+7"),
        ),
        (r#"{"a":true,"b":false,"c":null}"#, "c", Some("null")),
        (
            r#"{"a":{"b":{"c":7,"d":8}}}"#,
            "a.b",
            Some(r#"{"c":7,"d":8}"#),
        ),
        (r#"{"a":{"b":{"c":7,"d":8}}}"#, "a.b.c", Some("7")),
        (r#"{"tags":["go","rust"]}"#, "tags[1]", Some("rust")),
        (r#"{"tags":["go","rust"]}"#, "tags[2]", None),
        (
            r#"{"tags":["go", "rust"]}"#,
            "tags",
            Some(r#"["go", "rust"]"#),
        ),
        ("[10,20,[30,[40]]]", "[2][1][0]", Some("40")),
        (
            r#"[{"x":{"y":[1,2]}},{"wanted":"yes"}]"#,
            "[1].wanted",
            Some("yes"),
        ),
        (r#"{"e":{},"f":[]}"#, "e", Some("{}")),
        (r#"{"e":{},"f":[]}"#, "f", Some("[]")),
        (r#"{"a":"x","a":"y","b":1}"#, "a", Some("y")),
        (r#"{"a":{"k":1},"a":2}"#, "a.k", Some("1")),
        (r#"{"b":{"a":1},"a":2}"#, "a", Some("2")),
        (r#"{"a":[{"a":1}],"b":2}"#, "a.a", None),
        (
            r#"{"s":"a\nb\t\"\\\/\u8898\uD83D\uDE00"}"#,
            "s",
            Some("a\nb\t\"\\/\u{8898}\u{1f600}"),
        ),
        (r#"{"\u0061":1}"#, "a", Some("1")),
        (r#"{"x[0]":1}"#, r#"["x[0]"]"#, Some("1")),
        (r#"{"a.b":{"c":1}}"#, r#"["a.b"].c"#, Some("1")),
        (r#"{"":1}"#, r#"[""]"#, Some("1")),
        (r#"{"a\u0000x":1}"#, r#"["a\u0000x"]"#, Some("1")),
        (r#"{"x😀y":1}"#, r#"["x\uD83D\uDE00y"]"#, Some("1")),
        (
            r#"{"a":{"b":{"c":{"d":{"e":42}}}}}"#,
            "a.b.c.d.e",
            Some("42"),
        ),
        (r#"{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}"#, "a.b", None),
        ("7", "a", None),
        ("\"a\"", "a", None),
        ("", "a", None),
    ];
    for (text, path, expected) in cases {
        assert_eq!(at(text, path).as_deref(), *expected, "{text} {path}");
    }
}

#[test]
fn nothing_is_taken_from_a_text_that_is_wrong_or_cut_off() {
    let whole = r#"{"a":"v\u0041","b":[1,-0.5e-1,{"c":null}],"d":true} "#;
    assert_eq!(at(whole, "a").as_deref(), Some("vA"));
    for length in 0..whole.len() - 1 {
        assert_eq!(at(&whole[..length], "a"), None, "{}", &whole[..length]);
    }
    for wrong in [
        "{bad",
        "{a:1}",
        "[1,]",
        "{\"a\":1,}",
        "[01]",
        "[1.]",
        "[.5]",
        "[1e]",
        "[+1]",
        "[-]",
        "[tru]",
        "[\"\u{1}\"]",
        "[\"\\x\"]",
        "[\"\\u12\"]",
        "[\"\\uD83D\"]",
        "[\"\\uDEAD\"]",
        "[\"\\uD83Dx\"]",
        "[\"\\uD83D\\u0041\"]",
        "{}}",
        "[]]",
        "[}",
        "{]",
        "[1 2]",
        "{\"a\" 1}",
    ] {
        let text = format!("{{\"a\":1,\"x\":{wrong}}}");
        assert_eq!(at(&text, "a"), None, "{text}");
        assert_eq!(at(&format!("{{\"a\":1}}{wrong}"), "a"), None, "{wrong}");
    }
}

#[test]
fn paths_are_read_as_nginx_reads_them() {
    for path in [
        ".foo",
        "a[0]b",
        "a[\"x\"]y",
        "foo.",
        "foo..bar",
        "$.foo",
        "$",
        "a[]",
        "a[xyz]",
        "a[1a]",
        "a[12",
        "a[\"abc",
        "a[\"x\"",
        "a[\"x\"b",
        "a[\"x\\q\"]",
        "a[\"\\u12\"]",
        "o[\"x\\uD83D\"]",
        "a.[0]",
        "a.$b",
        "a[99999999999999999999]",
        "a[-1]",
        "a[+1]",
    ] {
        let read = JsonPath::parse(path.as_bytes());
        assert_eq!(read, Err(JsonPathError::Invalid), "{path}");
    }
    assert_eq!(JsonPath::parse(b""), Err(JsonPathError::Empty));
    for path in ["a", "a$", "a]b", "foo[\"x\"].bar", "[0][1]", "[\"a]b\"]"] {
        assert!(JsonPath::parse(path.as_bytes()).is_ok(), "{path}");
    }
}
