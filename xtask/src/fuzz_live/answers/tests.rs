use super::{Asked, foreign_name, read, shown};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn connections_are_read_as_responses() {
    let cases = [
        (String::new(), false, "nothing"),
        (OK.to_owned(), false, "200"),
        (
            format!("HTTP/1.1 100 Continue\r\n\r\n{OK}{OK}"),
            false,
            "200, 200",
        ),
        (
            format!("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n{OK}"),
            false,
            "304, 200",
        ),
        (
            format!("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{OK}"),
            true,
            "200, 200",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok".to_owned(),
            false,
            "200 cut off",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n".to_owned(),
            false,
            "200 cut off",
        ),
        ("HTTP/1.1 20".to_owned(), false, "0 cut off"),
        (
            "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK".to_owned(),
            false,
            "200",
        ),
        ("<html>".to_owned(), false, "headless"),
    ];
    for (text, head, expected) in cases {
        let headless = text.starts_with('<');
        let asked = Asked { head, headless };
        let answers = read(text.as_bytes(), asked);
        assert_eq!(
            answers.map(|answers| shown(&answers)),
            Ok(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn other_bytes_than_a_response_are_an_error() {
    let cases = [
        format!("{OK}left over"),
        "HTTP/1.1 200 OK\r\nA: b\nInjected: yes\r\n\r\n".to_owned(),
        "HTTP/1.1 2000 OK\r\n\r\n".to_owned(),
        "HTTP/1.0 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
    ];
    for text in cases {
        assert!(read(text.as_bytes(), Asked::default()).is_err(), "{text}");
    }
}

#[test]
fn a_field_from_elsewhere_is_found() {
    let text = "HTTP/1.1 200 OK\r\nServer: x\r\nInjected: yes\r\nContent-Length: 0\r\n\r\n";
    let answers = read(text.as_bytes(), Asked::default()).expect("a response");
    let known = ["server", "content-length"];
    assert_eq!(foreign_name(&answers, &known), Some("injected"));
    assert_eq!(
        foreign_name(&answers, &["server", "content-length", "injected"]),
        None
    );
}

#[test]
fn requests_decide_how_their_responses_are_read() {
    let cases = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, false),
        ("HEAD / HTTP/1.1\r\n\r\n", true, false),
        ("GET / HTTP/1.1\r\n\r\nGET /\r\n", false, true),
        ("GET http://a/b\r\n HTTP/1.1\r\n", false, true),
        ("GET /sta\rtic HTTP/1.1\r\n", false, true),
    ];
    for (sent, head, headless) in cases {
        let asked = Asked::by(sent.as_bytes());
        assert_eq!((asked.head, asked.headless), (head, headless), "{sent}");
    }
}
