//! Header lines.

use super::*;

fn listed(text: &str, rules: &HeadRules) -> Vec<String> {
    let text = format!("GET / HTTP/1.0\r\n{text}\r\n");
    let (result, head) = parse(text.as_bytes(), rules);
    assert_eq!(result, Ok(HeadStep::Complete), "{text:?}");
    let of = |span: Span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned();
    let marked = |field: &Field| {
        let mark = if field.valid { "" } else { "!" };
        format!("{mark}{}={}", of(field.name), of(field.value))
    };
    head.fields.iter().map(marked).collect()
}

fn log_of(error: HeadError, text: &str, head: &RequestHead) -> String {
    let mut log = Vec::new();
    error.write_log(text.as_bytes(), head, &mut log);
    String::from_utf8(log).unwrap()
}

#[test]
fn header_lines_are_read_as_in_nginx() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("a: b\r\n", &["a=b"]),
        ("a:b\n", &["a=b"]),
        ("a:   b c  \r\n", &["a=b c"]),
        ("a:\r\nb:  \r\n", &["a=", "b="]),
        ("a: \tb\t\r\n", &["a=\tb\t"]),
        ("a: b\r\r\r\n", &["a=b"]),
        ("a: b\u{1}\u{7f}\u{e9}\r\n", &["a=b\u{1}\u{7f}\u{e9}"]),
        ("a: b: c\r\n", &["a=b: c"]),
        ("a\r\nb\n", &["a=", "b="]),
        (
            "x_a: 1\r\n_b: 2\r\nx.c: 3\r\n\u{e9}: 4\r\nd: 5\r\n",
            &["d=5"],
        ),
        ("x/y: 1\r\n</k>: 2\r\n", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(listed(text, &nginx()), *expected, "{text:?}");
    }
}

#[test]
fn invalid_names_follow_the_rules() {
    use InvalidFields::{Ignore, Keep};
    let text = "x_a: 1\r\n_b: 2\r\nx.c: 3\r\nd: 4\r\n";
    let table: &[(InvalidFields, bool, &[&str])] = &[
        (Ignore, false, &["d=4"]),
        (Ignore, true, &["x_a=1", "_b=2", "d=4"]),
        (Keep, false, &["!x_a=1", "!_b=2", "!x.c=3", "d=4"]),
        (Keep, true, &["x_a=1", "_b=2", "!x.c=3", "d=4"]),
    ];
    for &(invalid_fields, underscores, expected) in table {
        let rules = HeadRules {
            invalid_fields,
            underscores,
            ..nginx()
        };
        assert_eq!(listed(text, &rules), expected);
    }
}

#[test]
fn left_out_lines_are_remembered_for_the_log() {
    let text = b"GET / HTTP/1.0\r\nx_a: 1  \r\nb: 2\r\n\r\n";
    let head = parse_whole(text);
    let ignored: Vec<&[u8]> = head.ignored.iter().map(|span| span.of(text)).collect();
    assert_eq!(ignored, [b"x_a: 1"]);
    let many = format!("GET / HTTP/1.0\r\n{}\r\n", "x_a: 1\r\n".repeat(100));
    assert_eq!(parse_whole(many.as_bytes()).ignored.len(), IGNORED_MAX);
}

#[test]
fn lines_that_every_rule_refuses() {
    let table: &[(&str, &str)] = &[
        (":a: b\r\n", r#""\x3a...""#),
        (" a: b\r\n", r#""\x20...""#),
        ("\ta: b\r\n", r#""\x09...""#),
        ("a: b\r\n c\r\n", r#""\x20...""#),
        ("foo\u{2}: b\r\n", r#""foo\x02...""#),
        ("foo : b\r\n", r#""foo\x20...""#),
        ("a: b\0c\r\n", r#""a: b\x00...""#),
        ("a: b\rc\r\n", "\"a: b\r\\x63...\""),
        ("a:\0\r\n", r#""a:\x00...""#),
        ("\rx", "\"\r\\x78...\""),
    ];
    for (lines, expected) in table {
        let rules = HeadRules {
            invalid_fields: InvalidFields::Keep,
            ..nginx()
        };
        let text = format!("GET / HTTP/1.0\r\n{lines}");
        let (result, head) = parse(text.as_bytes(), &rules);
        assert_eq!(result, Err(HeadError::InvalidField), "{text:?}");
        let expected = format!("client sent invalid header line: {expected}");
        assert_eq!(
            log_of(HeadError::InvalidField, &text, &head),
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn duplicates_of_single_headers_are_refused() {
    let single = [
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Match",
        "If-None-Match",
        "Content-Length",
        "Content-Range",
        "If-Range",
        "Transfer-Encoding",
        "Expect",
        "Authorization",
        "Proxy-Authorization",
    ];
    for name in single {
        let again = name.to_lowercase();
        let text = format!("GET / HTTP/1.0\r\n{name}: 1\r\nA: 2\r\n{again}: 3\r\n\r\n");
        let (result, head) = parse(text.as_bytes(), &nginx());
        assert_eq!(result, Err(HeadError::DuplicateField), "{text}");
        let expected = format!(
            "client sent duplicate header line: \"{again}: 3\", previous value: \"{name}: 1\""
        );
        assert_eq!(log_of(HeadError::DuplicateField, &text, &head), expected);
    }
    for name in [
        "User-Agent",
        "Referer",
        "Via",
        "Cookie",
        "Content-Type",
        "X-Foo",
        "TE",
    ] {
        let text = format!("GET / HTTP/1.0\r\n{name}: 1\r\n{name}: 3\r\n\r\n");
        assert_eq!(parse_whole(text.as_bytes()).fields.len(), 2, "{name}");
    }
}

#[test]
fn fields_are_found() {
    let text = b"GET / HTTP/1.1\nhOST: a\nX-Foo: 1\nCookie: b\nx-foo: 2\nCookie: c\n\n";
    let head = parse_whole(text);
    assert_eq!(head.find(Known::Cookie).unwrap().value.of(text), b"b");
    assert_eq!(head.find(Known::Host).unwrap().name.of(text), b"hOST");
    assert_eq!(head.find(Known::Range), None);
    assert_eq!(head.find(Known::Other), None);
    assert_eq!(head.find_name(text, b"X-FOO").unwrap().value.of(text), b"1");
    assert_eq!(head.find_name(text, b"X-Bar"), None);
}

#[test]
fn limits() {
    let rules = HeadRules {
        line_bytes_max: 64,
        head_bytes_max: 160,
        fields_max: 4,
        ..nginx()
    };
    let request = |path: usize, value: usize, count: usize| {
        let path = "p".repeat(path);
        let field = format!("a: {}\r\n", "v".repeat(value));
        format!("GET /{path} HTTP/1.0\r\n{}\r\n", field.repeat(count))
    };
    let complete = Ok(HeadStep::Complete);
    // A path of 48 and a value of 59 make lines of exactly 64 bytes.
    let table = [
        (request(48, 1, 1), complete),
        (request(49, 1, 1), Err(HeadError::LineTooLong)),
        (request(1, 59, 1), complete),
        (request(1, 60, 1), Err(HeadError::FieldTooLong)),
        (request(1, 1, 4), complete),
        (request(1, 1, 5), Err(HeadError::TooManyFields)),
        (request(48, 42, 2), complete),
        (request(48, 43, 2), Err(HeadError::HeadTooLarge)),
        (format!("{}GET / HTTP/1.0\n\n", "\r\n".repeat(80)), complete),
        (
            format!("{}GET / HTTP/1.0\n\n", "\r\n".repeat(81)),
            Err(HeadError::HeadTooLarge),
        ),
    ];
    for (text, expected) in table {
        let (result, _) = parse(text.as_bytes(), &rules);
        assert_eq!(result, expected, "{text:?} {}", text.len());
    }
    let text = format!("GET / HTTP/1.0\r\nlong: {}", "v".repeat(100));
    let (result, head) = parse(text.as_bytes(), &rules);
    assert_eq!(result, Err(HeadError::FieldTooLong));
    let expected = format!(
        "client sent too long header line: \"long: {}...\"",
        "v".repeat(58)
    );
    assert_eq!(log_of(HeadError::FieldTooLong, &text, &head), expected);
}
