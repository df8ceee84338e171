use super::{InvalidTrailer, Line, ValueReader};

#[test]
fn lines_say_what_follows() {
    let value = |key, flags, length| Line::Value { key, flags, length };
    let cases: &[(&[u8], Line<'_>)] = &[
        (b"END\r", Line::NotFound),
        (b"VALUE /a 0 8\r", value(b"/a", b"0", b"8")),
        (b"VALUE /a 0", value(b"/a", b"0", b"")),
        (b"VALUE /a 0 8 99", value(b"/a", b"0", b"8 99")),
        (b"ERROR\r", Line::Other),
        (b"", Line::Other),
    ];
    for (line, expected) in cases {
        assert_eq!(Line::parse(line), *expected);
    }
}

/// An answer, what is left of it, and whether it has ended and the connection can be used again.
const CASES: &[(&str, &str, bool, bool)] = &[
    (
        "VALUE /a 0 4\r\nbody\r\nEND\r\n",
        "VALUE /a 0 4\r\nbody",
        true,
        true,
    ),
    (
        "VALUE /a 0 0\r\n\r\nEND\r\n",
        "VALUE /a 0 0\r\n",
        true,
        true,
    ),
    ("END\r\n", "END\r\n", true, true),
    (
        "VALUE /a 0 4\r\nbody\r\nEN",
        "VALUE /a 0 4\r\nbody",
        false,
        false,
    ),
    ("VALUE /a 0 4\r\nbo", "VALUE /a 0 4\r\nbo", false, false),
    (
        "VALUE /a 0 4\r\nbody\r\nEND\r\nmore",
        "VALUE /a 0 4\r\nbody",
        true,
        false,
    ),
    ("END\r\nmore", "END\r\n", true, false),
    ("VALUE", "VALUE", false, false),
];

#[test]
fn what_stands_behind_a_value_is_taken_off_whole_and_byte_by_byte() {
    for (answer, left, ended, reusable) in CASES {
        for pieces in [1, answer.len()] {
            let mut reader = ValueReader::new();
            let mut bytes = Vec::new();
            for piece in answer.as_bytes().chunks(pieces) {
                let from = bytes.len();
                bytes.extend_from_slice(piece);
                reader.take(&mut bytes, from).expect(answer);
            }
            assert_eq!(bytes, left.as_bytes(), "{answer:?}");
            assert_eq!(reader.has_ended(), *ended, "{answer:?}");
            assert_eq!(reader.is_reusable(), *reusable, "{answer:?}");
        }
    }
    let mut wrong = b"VALUE /a 0 4\r\nbodies\r\nEND\r\n".to_vec();
    let refused = ValueReader::new().take(&mut wrong, 0);
    assert_eq!(refused, Err(InvalidTrailer));
}
