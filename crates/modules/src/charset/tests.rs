use super::handler::split;
use super::recode::{Pair, Table};

#[test]
fn the_character_set_of_a_type_is_found() {
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("text/html", "text/html", None),
        ("text/html; charset=utf-8", "text/html", Some("utf-8")),
        ("text/html;CHARSET=\"a b\"", "text/html", Some("a b")),
        (
            "text/html; x=y; charset=a; z=1",
            "text/html; x=y",
            Some("a"),
        ),
        ("text/html; charset", "text/html; charset", None),
    ];
    for (text, bare, charset) in cases {
        let expected = (bare.as_bytes(), charset.map(str::as_bytes));
        assert_eq!(split(text.as_bytes()), expected, "{text}");
    }
}

fn converted(table: &Table, pieces: &[&[u8]]) -> String {
    let (mut begun, mut out) = (Vec::new(), Vec::new());
    for piece in pieces {
        table.convert(&mut begun, piece, &mut out);
    }
    table.end(&begun, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn bytes_are_converted_both_ways() {
    let mut pair = Pair::of_bytes();
    for (from, to) in [("58", "59"), ("C0", "e1")] {
        assert!(pair.add(from, to).is_ok());
    }
    assert_eq!(converted(&pair.forth, &[b"aX\xff"]), "aY?");
    assert_eq!(converted(&pair.back, &[b"aY"]), "aX");
}

#[test]
fn utf8_is_converted_whatever_the_pieces() {
    let mut pair = Pair::of_utf8();
    for (from, to) in [("c0", "d090"), ("80", "E282AC")] {
        assert!(pair.add(from, to).is_ok());
    }
    assert_eq!(
        converted(&pair.forth, &[b"a\xc0\x80\xc1"]),
        "a\u{410}\u{20ac}?"
    );
    let Table::FromUtf8(_) = &pair.back else {
        panic!("another kind of table");
    };
    let text = "a\u{410}\u{20ac}\u{411}\u{1f600}".as_bytes();
    for at in 0..=text.len() {
        let (left, right) = text.split_at(at);
        let (mut begun, mut out) = (Vec::new(), Vec::new());
        pair.back.convert(&mut begun, left, &mut out);
        pair.back.convert(&mut begun, right, &mut out);
        pair.back.end(&begun, &mut out);
        assert_eq!(out, b"a\xc0\x80&#1041;&#128512;", "cut at {at}");
    }
    assert_eq!(converted(&pair.back, &[b"a\xffb\xe2\x82"]), "a?b?");
}

#[test]
fn wrong_lines_are_refused() {
    for (from, to) in [("100", "1"), ("x", "1"), ("1", "100"), ("1", "")] {
        assert!(Pair::of_bytes().add(from, to).is_err(), "{from} {to}");
    }
    for (from, to) in [
        ("1", "d"),
        ("1", "d0"),
        ("1", "4142"),
        ("1", "f09f9880"),
        ("1", "zz"),
    ] {
        assert!(Pair::of_utf8().add(from, to).is_err(), "{from} {to}");
    }
}
