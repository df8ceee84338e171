//! Tests of configurations and their errors, with the tests' registry.

use super::{MAIN, files, main_path, registry};
use crate::parse::parse;

fn errors(text: &str, globals: Option<&str>) -> Vec<String> {
    match registry().load(&files(text.as_bytes(), &[]), main_path(), globals) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .0
            .iter()
            .map(|error| error.to_string().replace(MAIN, "F"))
            .collect(),
    }
}

/// Text and its errors; `F` is the main file.
const DIRECTIVES: &[(&str, &[&str])] = &[
    ("", &[]),
    (
        "worker_processes auto; events { worker_connections 10; } http { }",
        &[],
    ),
    (
        "http { upstream u { server a; server b weight=2; } server { } server { } }",
        &[],
    ),
    ("http { map $a $b { default 1; x y z; sendfile; } }", &[]),
    (
        "frobnicate 1;",
        &["unknown directive \"frobnicate\" in F:1"],
    ),
    (
        "worker_proceses 1;",
        &["unknown directive \"worker_proceses\", did you mean \"worker_processes\"? in F:1"],
    ),
    (
        "http {\n  sednfile on;\n}",
        &["unknown directive \"sednfile\", did you mean \"sendfile\"? in F:2"],
    ),
    (
        "http { intrnal; }",
        &["unknown directive \"intrnal\", did you mean \"internal\"? in F:1"],
    ),
    (
        "inlcude x;",
        &["unknown directive \"inlcude\", did you mean \"include\"? in F:1"],
    ),
    (
        "frobnicate { more { } }",
        &["unknown directive \"frobnicate\" in F:1"],
    ),
    (
        "mail { x; }",
        &["\"mail\" directive is not supported yet in F:1"],
    ),
    (
        "sendfile on;",
        &["\"sendfile\" directive is not allowed here in F:1"],
    ),
    (
        "server { }",
        &["\"server\" directive is not allowed here in F:1"],
    ),
    (
        "http { location / { x; } }",
        &[
            "\"location\" directive is not allowed here in F:1",
            "unknown directive \"x\" in F:1",
        ],
    ),
    ("http;", &["directive \"http\" has no opening \"{\" in F:1"]),
    (
        "http { sendfile on { x; } }",
        &["directive \"sendfile\" is not terminated by \";\" in F:1"],
    ),
    (
        "http x { y; }",
        &[
            "invalid number of arguments in \"http\" directive in F:1",
            "unknown directive \"y\" in F:1",
        ],
    ),
    (
        "http { add_header a; }",
        &["invalid number of arguments in \"add_header\" directive in F:1"],
    ),
    (
        "http { add_header a b c d; }",
        &["invalid number of arguments in \"add_header\" directive in F:1"],
    ),
    (
        "events { }\nevents { }",
        &["\"events\" directive is duplicate in F:2"],
    ),
    (
        "http { sendfile on; sendfile maybe; }",
        &["\"sendfile\" directive is duplicate in F:1"],
    ),
    ("http { sendfile on; server { sendfile off; } }", &[]),
    (
        "http { map $a $b { x { y; } } }",
        &["unexpected \"{\" in F:1"],
    ),
];

#[test]
fn directives_are_checked_by_their_rows() {
    for (text, expected) in DIRECTIVES {
        assert_eq!(errors(text, None), *expected, "{text}");
    }
}

#[test]
fn values_are_checked_by_their_types() {
    let table: &[(&str, &[&str])] = &[
        ("sendfile ON;", &[]),
        (
            "sendfile yes;",
            &["invalid value \"yes\" in \"sendfile\" directive, \
                 it must be \"on\" or \"off\" in F:1"],
        ),
        ("client_body_buffer_size 8K;", &[]),
        (
            "client_body_buffer_size 8g;",
            &["\"client_body_buffer_size\" directive invalid value in F:1"],
        ),
        ("client_max_body_size 8g;", &[]),
        (
            "client_max_body_size 8t;",
            &["\"client_max_body_size\" directive invalid value in F:1"],
        ),
        ("send_timeout '1h 30m';", &[]),
        (
            "send_timeout 1y;",
            &["\"send_timeout\" directive invalid value in F:1"],
        ),
        ("expires_age 1y;", &[]),
        (
            "expires_age 1ms;",
            &["\"expires_age\" directive invalid value in F:1"],
        ),
        (
            "keepalive_requests -1;",
            &["\"keepalive_requests\" directive invalid number in F:1"],
        ),
        ("satisfy ANY;", &[]),
        ("satisfy some;", &["invalid value \"some\" in F:1"]),
        ("next error Timeout;", &[]),
        ("next error never;", &["invalid value \"never\" in F:1"]),
        ("gzip_buffers 4 8k;", &[]),
        (
            "gzip_buffers 0 8k;",
            &["\"gzip_buffers\" directive invalid value in F:1"],
        ),
        ("root '';", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(
            errors(&format!("http {{ {text} }}"), None),
            *expected,
            "{text}"
        );
    }
}

#[test]
fn errors_of_all_kinds_are_in_reading_order() {
    let text =
        "worker_processes 1;\nfrobnicate;\n;\nhttp {\n bogus\n 1;\n x \"y\"z;\n root a\n}\nweird";
    let expected = [
        "\"worker_processes\" directive is duplicate in F:1",
        "unknown directive \"frobnicate\" in F:2",
        "unexpected \";\" in F:3",
        "unknown directive \"bogus\" in F:6",
        "unexpected \"z\" in F:7",
        "unexpected \"}\", is a \";\" missing in line 8? in F:9",
        "unexpected end of file, expecting \";\" or \"}\" in F:10",
    ];
    assert_eq!(errors(text, Some("worker_processes 2;")), expected);
    let expected = [
        "unknown directive \"oh\" in command line",
        "unknown directive \"no\" in F:1",
    ];
    assert_eq!(errors("no;", Some("oh;")), expected);
}

#[test]
fn a_long_message_is_cut_where_nginx_cuts_it() {
    let text = format!("{};", "x".repeat(4000));
    let expected = format!("unknown directive \"{} in F:1", "x".repeat(1024 - 19));
    assert_eq!(errors(&text, None), [expected]);
}

#[test]
fn check_alone_takes_a_parsed_tree() {
    let tree = parse(&files(b"http { root a b; }", &[]), main_path(), None).unwrap();
    let errors = registry().check(&tree).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "invalid number of arguments in \"root\" directive in /etc/main.conf:1"
    );
    let tree = parse(&files(b"http { root a; }", &[]), main_path(), None).unwrap();
    assert!(registry().check(&tree).is_ok());
}
