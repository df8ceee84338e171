use super::*;

#[test]
fn heads_are_written() {
    let mut out = Vec::new();
    status_line(&mut out, Version::Http11, 200, reason_phrase(200));
    field(&mut out, "Server", b"turnpike");
    number_field(&mut out, "Content-Length", u64::MAX);
    number_field(&mut out, "Age", 0);
    end(&mut out);
    status_line(&mut out, Version::Http10, 404, reason_phrase(404));
    status_line(&mut out, Version::Http11, 299, reason_phrase(299));
    request_line(&mut out, b"GET", b"/x", Version::Http11);
    let expected = "HTTP/1.1 200 OK\r\nServer: turnpike\r\n\
        Content-Length: 18446744073709551615\r\nAge: 0\r\n\r\n\
        HTTP/1.0 404 Not Found\r\nHTTP/1.1 299 \r\nGET /x HTTP/1.1\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn chunk_heads_are_lower_case_hexadecimal() {
    let table = [
        (0, "0\r\n"),
        (15, "f\r\n"),
        (16, "10\r\n"),
        (u64::MAX, "ffffffffffffffff\r\n"),
    ];
    for (len, expected) in table {
        let mut out = Vec::new();
        write_chunk_head(&mut out, len);
        assert_eq!(out, expected.as_bytes());
    }
}

#[test]
fn values_over_several_lines_become_one_line() {
    let table = [
        ("", ""),
        (" a b ", " a b "),
        ("a\n", "a"),
        ("\r\n a", "a"),
        ("a;\n\t b;\r\n\r\nc", "a; b; c"),
        ("\n", ""),
    ];
    for (text, expected) in table {
        let found = String::from_utf8(unfold(text.as_bytes())).expect("text");
        assert_eq!(found, expected, "{text:?}");
    }
}
