use super::{Framing, Part, chunked, head};

#[test]
fn heads_are_held_to_the_book() {
    let cases: &[(&str, Option<Framing>)] = &[
        ("A: b\r\n\r\n", Some(Framing::Absent)),
        ("Content-Length: 5\r\n\r\n", Some(Framing::Length(5))),
        ("transfer-encoding: Chunked\r\n\r\n", Some(Framing::Chunked)),
        ("Content-Length: +5\r\n\r\n", None),
        ("Content-Length: 5\r\nContent-Length: 5\r\n\r\n", None),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            None,
        ),
        ("Transfer-Encoding: gzip, chunked\r\n\r\n", None),
        ("A : b\r\n\r\n", None),
        (" a: b\r\n\r\n", None),
        ("a\r\n\r\n", None),
        ("a: b\nc: d\r\n\r\n", None),
        ("a: b\rc: d\r\n\r\n", None),
        ("a: b\0\r\n\r\n", None),
    ];
    for (fields, expected) in cases {
        let text = format!("GET / HTTP/1.1\r\n{fields}");
        let found = head(text.as_bytes()).and_then(|part| match part {
            Part::Whole(head) => head.framing(),
            Part::Cut => Err("cut".to_owned()),
        });
        assert_eq!(found.ok(), *expected, "{fields}");
    }
}

#[test]
fn chunked_bodies_are_held_to_the_book() {
    let whole = |content: &str, used| Ok(Part::Whole((content.as_bytes().to_vec(), used)));
    assert_eq!(chunked(b"2\r\nok\r\n0\r\n\r\nrest"), whole("ok", 12));
    assert_eq!(
        chunked(b"2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n"),
        whole("ok", 22)
    );
    for cut in [
        "",
        "2\r\no",
        "2\r\nok\r\n",
        "2\r\nok\r\n0\r\n",
        "2\r\nok\r\n0\r\nA: b\r\n",
    ] {
        assert_eq!(chunked(cut.as_bytes()), Ok(Part::Cut), "{cut}");
    }
    for broken in [
        "2 \r\nok\r\n",
        "-2\r\n",
        "2\r\nokk\r\n",
        "\r\n",
        "0\r\nno field\r\n\r\n",
    ] {
        assert!(chunked(broken.as_bytes()).is_err(), "{broken}");
    }
}
