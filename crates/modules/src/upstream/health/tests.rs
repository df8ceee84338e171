#![allow(clippy::unwrap_used)]

use std::path::Path;

use turnpike_conf::{MemoryLoader, parse};
use turnpike_wire::message::Head;

use super::question::Answer;
use super::{Conditions, Match as _};

fn read(text: &str) -> Result<Conditions, String> {
    let loader: MemoryLoader = [(Path::new("/c").to_path_buf(), text.as_bytes().to_vec())]
        .into_iter()
        .collect();
    let tree = parse(&loader, Path::new("/c"), None).map_err(|errors| errors.to_string())?;
    let mut conditions = Conditions::default();
    for line in &tree.directives {
        conditions.add(line, " in /c:1")?;
    }
    Ok(conditions)
}

#[test]
fn conditions_hold_or_do_not() {
    let head = Head::of(
        301,
        &[
            ("Content-Type", "text/html"),
            ("X-Load", "7"),
            ("X-None", "0"),
            ("Set-Cookie", "session=x; Path=/"),
        ],
    );
    let answer = Answer {
        status: head.status,
        fields: &head.fields,
        body: b"Welcome to the server",
    };
    let cases = [
        ("", None),
        ("status 301;", None),
        ("status 200-299 301;", None),
        ("status 200;", Some("checking status code")),
        ("status ! 500;", None),
        ("status ! 300-399;", Some("checking status code")),
        ("header content-type;", None),
        ("header ! X-Load;", Some("checking header")),
        ("header ! X-Other;", None),
        ("header Content-Type = text/html;", None),
        ("header Content-Type = text;", Some("checking header")),
        ("header Content-Type != text/html;", Some("checking header")),
        ("header X-Other != 7;", None),
        ("header X-Load ~ ^[0-7]$;", None),
        ("header X-Load !~ 7;", Some("checking header")),
        ("header X-Other ~ .;", Some("checking header")),
        ("body ~ \"Welcome to\";", None),
        ("body !~ server;", Some("checking body")),
        ("body ~ welcome;", Some("checking body")),
        ("require $upstream_status $upstream_http_x_load;", None),
        (
            "require $upstream_http_x_none;",
            Some("checking required variables"),
        ),
        (
            "require $upstream_http_x_load $upstream_http_x_other;",
            Some("checking required variables"),
        ),
        ("require $upstream_cookie_session;", None),
        (
            "require $upstream_cookie_other;",
            Some("checking required variables"),
        ),
        (
            "status 301; header X-Load; body ~ nothing;",
            Some("checking body"),
        ),
    ];
    for (text, expected) in cases {
        let judged = read(text).unwrap().judge(&answer);
        assert_eq!(judged.err(), expected, "{text}");
    }
}

#[test]
fn conditions_that_say_nothing_are_refused() {
    let cases = [
        ("status;", "invalid parameters of \"status\""),
        ("status 99;", "invalid status \"99\""),
        ("status 300-200;", "invalid status \"300-200\""),
        ("header;", "invalid parameters of \"header\""),
        ("header A < 7;", "invalid operator \"<\" in \"header\""),
        ("body = x;", "invalid parameters of \"body\""),
        ("require;", "invalid parameters of \"require\""),
        ("require a;", "invalid variable name \"a\""),
        (
            "require $arg_a;",
            "\"require\" accepts only $upstream_status, $upstream_http_NAME and \
             $upstream_cookie_NAME, not \"$arg_a\": a check has no client request",
        ),
        ("color red;", "unknown directive \"color\""),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).err().unwrap(), expected, "{text}");
    }
    assert!(
        read("body ~ (;")
            .err()
            .unwrap()
            .contains("pcre2_compile() failed")
    );
}
