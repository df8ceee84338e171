use super::super::answers::{Asked, read};
use super::{Script, TOKEN_BYTES, faithful, foreign_token, marked, token};

#[test]
fn marks_of_others_are_found() {
    let (own, other) = (token(1, 1), token(1, 2));
    assert_eq!(own.len(), TOKEN_BYTES);
    let text = |token: &str| marked(b"a TOKEN.TOKEN b", token);
    assert_eq!(foreign_token(&text(&own), own.as_bytes()), None);
    assert_eq!(foreign_token(&text(&other), own.as_bytes()), Some(other));
}

#[test]
fn a_response_that_was_cut_off_may_not_look_whole() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
            false,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nno", true),
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
            true,
        ),
    ];
    let client = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let answers = read(client, Asked::default()).expect("a response");
    for (sent, expected) in cases {
        assert_eq!(
            faithful(&answers[0], sent.as_bytes()).is_ok(),
            expected,
            "{sent}"
        );
    }
}

#[test]
fn a_script_is_always_the_same() {
    for case in 0..100 {
        let (first, again) = (Script::of_case(3, case), Script::of_case(3, case));
        assert_eq!((first.pieces, first.after), (again.pieces, again.after));
    }
}
