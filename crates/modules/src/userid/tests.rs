use super::identifier::Identifier;

#[test]
fn identifiers_are_written_and_read() {
    let identifier = Identifier::new([127, 0, 0, 1], [1, 2, 3, 4], 5);
    for (mark, end) in [(None, "AA=="), (Some(b't'), "AAt="), (Some(b'='), "AA==")] {
        let cookie = identifier.encode(mark);
        assert!(
            cookie.starts_with("fwAAAQECAwQ") && cookie.ends_with(end),
            "{cookie}"
        );
        assert_eq!(Identifier::read(cookie.as_bytes()), Some(identifier));
        let mark = mark.unwrap_or(b'=');
        assert!(Identifier::has_mark(cookie.as_bytes(), mark), "{cookie}");
        assert!(!Identifier::has_mark(cookie.as_bytes(), b'x'), "{cookie}");
    }
    let number = u32::from_ne_bytes([127, 0, 0, 1]);
    let text = identifier.in_hexadecimal();
    assert_eq!((text.len(), &text[..8]), (32, &*format!("{number:08X}")));
}

#[test]
fn what_is_no_identifier_is_not_taken_for_one() {
    for cookie in [
        "",
        "fwAAAQECAwQFAAAAAAAAA",
        "fwAAAQECAwQF*AAAAAAAAAA==",
        "\u{e4}".repeat(20).as_str(),
    ] {
        assert_eq!(Identifier::read(cookie.as_bytes()), None, "{cookie}");
    }
}
