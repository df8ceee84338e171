use super::super::answers::{Asked, read};
use super::{CLOSED, has_tab_around_value, is_explained, unexplained};

const REQUEST: &[u8] = b"HEAD / HTTP/1.1\r\nHost: a.test\r\nX: y\rz\r\n\r\n";

#[test]
fn nothing_explains_success_where_nginx_refuses() {
    for ours in [200, 204, 206, 301, 302, 304] {
        for theirs in [CLOSED, 400, 405, 411, 413, 414, 417, 431, 501, 505] {
            assert!(!is_explained(ours, theirs, REQUEST), "{ours} {theirs}");
        }
    }
}

#[test]
fn tabs_around_values_differ_from_others() {
    let cases = [
        ("Host:\ta\r\n", true),
        ("Host: \t a\r\n", true),
        ("Host: a\t\r\n", true),
        ("Host: a\tb\r\n", false),
        ("\tHost: a\r\n", false),
        ("Host\t: a\r\n", false),
        ("GET /\tx HTTP/1.1\r\n", false),
    ];
    for (sent, expected) in cases {
        assert_eq!(has_tab_around_value(sent.as_bytes()), expected, "{sent:?}");
    }
}

#[test]
fn only_a_server_that_announces_the_end_may_answer_less() {
    let one = |more: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{more}\r\n");
    let theirs = one("") + &one("");
    let theirs = read(theirs.as_bytes(), Asked::default()).expect("two responses");
    for (more, expected) in [("", true), ("Connection: close\r\n", false)] {
        let ours = read(one(more).as_bytes(), Asked::default()).expect("a response");
        assert_eq!(
            unexplained(&ours, &theirs, REQUEST).is_some(),
            expected,
            "{more}"
        );
    }
    let more = read(one("").as_bytes(), Asked::default()).expect("a response");
    assert!(unexplained(&theirs, &more, REQUEST).is_some());
}
