#![allow(clippy::unwrap_used)]

use std::path::Path;

use turnpike_conf::{MemoryLoader, parse};

use super::{ANSWER_BYTES_MAX, Conversation, Judgement, Match as _};

fn read(text: &str) -> Result<Conversation, String> {
    let loader: MemoryLoader = [(Path::new("/c").to_path_buf(), text.as_bytes().to_vec())]
        .into_iter()
        .collect();
    let tree = parse(&loader, Path::new("/c"), None).map_err(|errors| errors.to_string())?;
    let mut conversation = Conversation::default();
    for line in &tree.directives {
        conversation.add(line, " in /c:1")?;
    }
    Ok(conversation)
}

#[test]
fn answers_are_judged_as_they_come() {
    let cases: &[(&str, &[u8], Judgement)] = &[
        ("", b"", Judgement::Good),
        ("send x;", b"", Judgement::Good),
        ("expect +PONG;", b"", Judgement::Open),
        ("expect +PONG;", b"+PO", Judgement::Open),
        ("expect +PONG;", b"+PONG\r\n", Judgement::Good),
        ("expect +PONG;", b"-NO", Judgement::Bad),
        ("expect PONG;", b"+PONG", Judgement::Bad),
        (r"expect \x00\xffa;", b"\0\xffab", Judgement::Good),
        ("expect ~ \"200 OK\";", b"HTTP/1.1 2", Judgement::Open),
        ("expect ~ \"200 OK\";", b"HTTP/1.1 200 OK", Judgement::Good),
        (r"expect ~ \x00$;", b"a\0", Judgement::Good),
        ("expect ~ b;", &[b'a'; ANSWER_BYTES_MAX], Judgement::Bad),
    ];
    for (text, answer, expected) in cases {
        let judged = read(text).unwrap().judge(answer);
        assert_eq!(judged, *expected, "{text}: {answer:?}");
    }
}

#[test]
fn what_is_sent_may_have_bytes_of_any_value() {
    let cases: &[(&str, &[u8])] = &[
        ("send PING\\r\\n;", b"PING\r\n"),
        ("send \"a b\\n\";", b"a b\n"),
        (r"send \x0a\xF0x;", b"\n\xf0x"),
        (r"send a\qb;", b"a\\qb"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).unwrap().send, *expected, "{text}");
    }
}

#[test]
fn conversations_that_say_nothing_are_refused() {
    let cases = [
        ("send;", "invalid parameters of \"send\""),
        ("send a b;", "invalid parameters of \"send\""),
        ("send a; send b;", "\"send\" directive is duplicate"),
        ("expect = x;", "invalid parameters of \"expect\""),
        ("expect x; expect ~ y;", "\"expect\" directive is duplicate"),
        (r"send \x0;", r#"invalid hex literal in "\x0""#),
        (r"send \xg0;", r#"invalid hex literal in "\xg0""#),
        ("status 200;", "unknown directive \"status\""),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).err().unwrap(), expected, "{text}");
    }
    let error = read("expect ~ (;").err().unwrap();
    assert!(error.contains("pcre2_compile() failed"), "{error}");
}
