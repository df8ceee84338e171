use turnpike_wire::ssi::{Event, Parser};

use super::command::Order;
use super::expression::{Comparison, parse};

#[test]
fn expressions_are_read_as_nginx_does() {
    let text = |right, negated| Comparison::Text { right, negated };
    let regex = |right, negated| Comparison::Regex { right, negated };
    let cases: &[(&str, Option<(&str, Comparison<'_>)>)] = &[
        ("$A", Some(("$A", Comparison::IsSet))),
        ("${a}b", Some(("${a}b", Comparison::IsSet))),
        ("$a = b", Some(("$a", text(b"b", false)))),
        ("$a!=b c", Some(("$a", text(b"b c", true)))),
        ("$a = /b/", Some(("$a", regex(b"b", false)))),
        ("$a != /(b)/", Some(("$a", regex(b"(b)", true)))),
        ("$a = /", Some(("$a", text(b"/", false)))),
        ("$a = ", Some(("$a", text(b"", false)))),
        ("$a = /b", None),
        ("$a < b", None),
        ("$a ! b", None),
    ];
    for (expression, expected) in cases {
        let expected = expected.map(|(left, right)| (left.as_bytes(), right));
        assert_eq!(parse(expression.as_bytes()), expected, "{expression}");
    }
}

/// A command, and what is wrong with it.
const CASES: &[(&str, &str)] = &[
    ("include virtual=\"/a\" wait=\"yes\" set=\"b\"", ""),
    ("echo var=\"a\" default=\"\" encoding=\"url\"", ""),
    ("config", ""),
    ("endif", ""),
    ("exec cmd=\"ls\"", "invalid SSI command: \"exec\""),
    (
        "echo",
        "mandatory \"var\" parameter is absent in \"echo\" SSI command",
    ),
    (
        "else a=\"b\"",
        "invalid parameter name: \"a\" in \"else\" SSI command",
    ),
    (
        "set var=\"a\" var=\"b\"",
        "duplicate \"var\" parameter in \"set\" SSI command",
    ),
    ("include", "no parameter in \"include\" SSI command"),
    (
        "include file=\"a\" virtual=\"b\"",
        "inclusion may be either virtual=\"b\" or file=\"a\"",
    ),
    (
        "include file=\"a\" set=\"b\" stub=\"c\"",
        "\"set\" and \"stub\" cannot be used together in \"include\"",
    ),
    (
        "include file=\"a\" wait=\"maybe\"",
        "invalid value \"maybe\" in the \"wait\" parameter",
    ),
    (
        "echo var=\"a\" encoding=\"rot13\"",
        "unknown encoding \"rot13\" in the \"echo\" command",
    ),
];

#[test]
fn commands_are_checked_as_nginx_does() {
    for (text, expected) in CASES {
        let template = format!("<!--#{text} -->");
        let (_, event) = Parser::new(256).feed(template.as_bytes(), &mut Vec::new());
        let Event::Command(command) = event else {
            panic!("{text} is no command: {event:?}");
        };
        let complaint = Order::read(&command).err().unwrap_or_default();
        assert_eq!(complaint, *expected, "{text}");
    }
}
