//! Tables: what arguments mean, and what is wrong with them.

#![allow(clippy::unwrap_used)]

use super::plan::{Scope, parse};

#[test]
fn arguments_are_options_and_fields() {
    type Fields = &'static [(&'static str, &'static str)];
    let plain = Scope::default();
    let of_404 = Scope {
        statuses: vec![404, 500, 503],
        types: vec![b"text/html".as_slice().into(), b"a/b".as_slice().into()],
        ..Scope::default()
    };
    let replacing = Scope {
        replaces: true,
        ..Scope::default()
    };
    let adding = Scope {
        adds: true,
        ..Scope::default()
    };
    let cases: &[(&str, &[&str], &Scope, Fields)] = &[
        (
            "more_set_headers",
            &["Server: x y", "A:b:c", "C", "D: "],
            &plain,
            &[("Server", "x y"), ("A", "b:c"), ("C", ""), ("D", "")],
        ),
        (
            "more_set_headers",
            &["-s", "404", "-t", "text/html a/b", "-s", "500 503", "A: b"],
            &of_404,
            &[("A", "b")],
        ),
        ("more_set_headers", &["-a", "A: b"], &adding, &[("A", "b")]),
        (
            "more_clear_headers",
            &["X-*", "Server", "B:"],
            &plain,
            &[("X-*", ""), ("Server", ""), ("B", "")],
        ),
        (
            "more_set_input_headers",
            &["-r", "Host: $a"],
            &replacing,
            &[("Host", "$a")],
        ),
    ];
    for (directive, words, scope, fields) in cases {
        let (read_scope, read_fields) = parse(directive, words).unwrap();
        assert_eq!(read_scope, **scope, "{words:?}");
        assert_eq!(read_fields, *fields, "{words:?}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (directive, words, expected) in [
        (
            "more_set_headers",
            &["-t"][..],
            "more_set_headers: option -t takes an argument.",
        ),
        (
            "more_set_headers",
            &["-x"],
            "more_set_headers: invalid option name: \"-x\"",
        ),
        (
            "more_clear_headers",
            &["-a", "A"],
            "more_clear_headers: invalid option name: \"-a\"",
        ),
        (
            "more_set_input_headers",
            &["-s", "404", "A: b"],
            "more_set_input_headers: invalid option name: \"-s\"",
        ),
        (
            "more_set_headers",
            &["-s", "x", "A: b"],
            "more_set_headers: invalid status \"x\"",
        ),
        (
            "more_set_headers",
            &[": b"],
            "more_set_headers: invalid header name \"\"",
        ),
        (
            "more_set_headers",
            &["A B: c"],
            "more_set_headers: invalid header name \"A B\"",
        ),
        (
            "more_set_headers",
            &["-a", "Server: b"],
            "more_set_headers: can not append builtin headers \"Server\"",
        ),
        (
            "more_clear_headers",
            &["Content-Length"],
            "more_clear_headers: \"Content-Length\" belongs to the protocol and cannot be changed, \
             remove it here",
        ),
    ] {
        assert_eq!(parse(directive, words).unwrap_err(), expected.into());
    }
}
