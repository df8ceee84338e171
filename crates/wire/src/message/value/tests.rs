use super::*;

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

#[test]
fn the_first_control_byte_is_found_wherever_it_stands() {
    for byte in 0..=255 {
        for (length, at) in (0..20).flat_map(|length| (0..length).map(move |at| (length, at))) {
            // What follows a tab, and bytes that differ from a control byte in one bit.
            let mut text = vec![b'\t'; length];
            for (index, other) in text.iter_mut().enumerate().take(at) {
                *other = [b'\t', b' ', 0x9f, 0xff, 0x80, b'~'][index % 6];
            }
            text[at] = byte;
            let expected = text.iter().position(|byte| is_control(*byte));
            assert_eq!(find_control(&text), expected, "{text:?}");
        }
    }
}

#[test]
fn numbers_have_their_digits() {
    for (value, expected) in [
        (0, "0"),
        (7, "7"),
        (10, "10"),
        (u64::MAX, "18446744073709551615"),
    ] {
        assert_eq!(Digits::of(value).text(), expected.as_bytes());
    }
}
