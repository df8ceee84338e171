//! What the family reads and writes without a request: conditions, redirects, truth.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use turnpike_conf::{Complaint, MemoryLoader, parse};

use super::functions::{
    ALPHABET, Function, Surroundings, UNTURNED, decode_base32, encode_base32, rotate,
};
use super::handler::{is_true, unescape_redirect};
use super::plan::condition_words;
use super::upstream_lists::UpstreamList;

/// The words of a directive as the parser reads them.
fn words(text: &str) -> Arc<[turnpike_conf::Word]> {
    let mut files = std::collections::BTreeMap::new();
    files.insert("/conf".into(), format!("if {text} {{}}").into_bytes());
    let tree = parse(&MemoryLoader(files), Path::new("/conf"), None).unwrap();
    tree.directives[0].arguments.clone()
}

#[test]
fn parentheses_stand_alone_or_touch_the_words() {
    let cases: &[(&str, Result<&[&str], &str>)] = &[
        ("($a)", Ok(&["$a"])),
        ("( $a )", Ok(&["$a"])),
        ("($a = b)", Ok(&["$a", "=", "b"])),
        ("( $a ~* b )", Ok(&["$a", "~*", "b"])),
        ("(!-f /x)", Ok(&["!-f", "/x"])),
        ("$a", Err("invalid condition \"$a\"")),
        ("($a", Err("invalid condition \"$a\"")),
        ("()", Err("invalid condition \"\"")),
    ];
    for (text, expected) in cases {
        let words = words(text);
        let expected = expected.map(<[&str]>::to_vec).map_err(Complaint::from);
        assert_eq!(condition_words(&words), expected, "{text}");
    }
}

#[test]
fn escapes_that_need_not_be_there_are_undone() {
    let cases: &[(&[u8], &[u8])] = &[
        (b"http://x/a", b"http://x/a"),
        (b"/%41%7e%2F", b"/A~/"),
        (b"/%25%20%7f%c3", b"/%25%20%7f%c3"),
        (b"/a?%41", b"/a?%41"),
        (b"/%3F%41", b"/?%41"),
        (b"/%zz", b"/zz"),
        (b"/%4", b"/"),
        (b"/%", b"/"),
    ];
    for (text, expected) in cases {
        let mut out = Vec::new();
        unescape_redirect(text, &mut out);
        assert_eq!(
            out.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }
}

#[test]
fn zero_and_nothing_are_false() {
    let cases: &[(&[u8], bool)] = &[
        (b"", false),
        (b"0", false),
        (b"00", true),
        (b"1", true),
        (b" ", true),
    ];
    for (value, expected) in cases {
        assert_eq!(is_true(value), *expected);
    }
}

#[test]
fn functions_give_what_the_module_gives() {
    let cases: &[(&str, &str, &str)] = &[
        ("set_escape_uri", "/a b?c=d&e", "%2Fa%20b%3Fc%3Dd%26e"),
        ("set_unescape_uri", "a%20b+c%2f%zz%", "a b c/%zz%"),
        (
            "set_quote_json_str",
            "a\"b\\\n\u{1}",
            "\"a\\\"b\\\\\\n\\u0001\"",
        ),
        ("set_quote_json_str", "", "null"),
        ("set_quote_sql_str", "", "''"),
        (
            "set_quote_sql_str",
            "a'b\"c\\d\ne\rf\tg\u{8}h\u{1a}i\0j\u{1}k",
            "'a\\'b\\\"c\\\\d\\ne\\rf\\tg\\bh\\Zi\\0j\u{1}k'",
        ),
        ("set_quote_pgsql_str", "", "''"),
        ("set_quote_pgsql_str", "it's", "E'it\\'s'"),
        ("set_encode_base64", "a?>", "YT8+"),
        ("set_decode_base64", "YT8+", "a?>"),
        ("set_decode_base64", "*", ""),
        ("set_encode_base64url", "a?>b", "YT8-Yg"),
        ("set_decode_base64url", "YT8-Yg", "a?>b"),
        ("set_encode_hex", "az", "617a"),
        ("set_decode_hex", "617A", "az"),
        ("set_decode_hex", "6", ""),
        ("set_md5", "", "d41d8cd98f00b204e9800998ecf8427e"),
        (
            "set_sha1",
            "abc",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
        ),
    ];
    for (name, text, expected) in cases {
        let Some(Function::Text(of)) = Function::of(name, &Surroundings::default()) else {
            panic!("{name} is no function of one text");
        };
        let value = of(text.as_bytes());
        assert_eq!(
            String::from_utf8_lossy(&value),
            *expected,
            "{name} of {text}"
        );
    }
}

#[test]
fn base32_is_that_of_the_module() {
    for (text, encoded) in [
        ("", ""),
        ("a", "c4======"),
        ("ab", "c5h0===="),
        ("abc", "c5h66==="),
        ("abcd", "c5h66p0="),
        ("abcde", "c5h66p35"),
        ("abcdefghij", "c5h66p35cpjmgqba"),
    ] {
        let (text, encoded) = (text.as_bytes(), encoded.as_bytes());
        let bare: Vec<u8> = encoded
            .iter()
            .copied()
            .filter(|byte| *byte != b'=')
            .collect();
        assert_eq!(encode_base32(&ALPHABET, true, text), encoded);
        assert_eq!(encode_base32(&ALPHABET, false, text), bare);
        for encoded in [encoded, &bare] {
            assert_eq!(decode_base32(&ALPHABET, encoded).as_deref(), Some(text));
        }
    }
    let other = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    assert_eq!(encode_base32(&other, true, b"abc"), b"MFRGG===");
    assert_eq!(decode_base32(&ALPHABET, b"C5H66==="), None);
}

#[test]
fn numbers_rotate_from_the_variable_or_from_the_last_one() {
    let turned = AtomicI64::new(UNTURNED);
    // As the module does it: the functions of a block share what was last.
    for (own, from, to, expected) in [
        ("", "1", "3", Some("1")),
        ("7", "5", "9", Some("8")),
        ("", "3", "1", Some("1")),
        ("", "1", "3", Some("2")),
        ("", "1", "3", Some("3")),
        ("", "1", "3", Some("1")),
        ("9", "5", "9", Some("5")),
        ("", "a", "3", None),
    ] {
        let next = rotate(&turned, own.as_bytes(), from.as_bytes(), to.as_bytes());
        let next = next.map(|text| String::from_utf8(text).expect("digits"));
        assert_eq!(next.as_deref(), expected, "{own} {from} {to}");
    }
}

#[test]
fn lists_give_the_names_that_the_module_gives() {
    // As the module answered them: by the lower half of nginx's hash, in any case.
    let cases: &[(&str, &[(&str, &str)])] = &[
        (
            "moon sun earth",
            &[
                ("", "moon"),
                ("hello", "sun"),
                ("world", "moon"),
                ("larry", "earth"),
                ("LARRY", "earth"),
                ("audreyt", "earth"),
                ("%C3%9C", "earth"),
            ],
        ),
        (
            "3:moon 2:sun http://a:8:b",
            &[("", "moon"), ("hello", "sun"), ("larry", "moon")],
        ),
        ("0:moon", &[("", ""), ("hello", "")]),
        ("0:moon sun", &[("", "sun"), ("hello", "sun")]),
        ("3:", &[("hello", "")]),
    ];
    for (words, texts) in cases {
        let list = UpstreamList::read(words.split(' ')).expect("a list");
        for (text, expected) in *texts {
            assert_eq!(list.choose(text.as_bytes()), expected.as_bytes(), "{text}");
        }
    }
    for (words, message) in [
        ("3", "upstream list just consists of number \"3\""),
        ("a 3x", "upstream list not correct format \"3x\""),
        ("4294967295:a b", "upstream list not correct format \"b\""),
        (
            "4294967296:a",
            "upstream list not correct format \"4294967296:a\"",
        ),
    ] {
        let list = UpstreamList::read(words.split(' '));
        assert_eq!(list, Err(message.into()));
    }
}
