#![allow(clippy::unwrap_used)]

use super::*;

/// The result of a template that is read in pieces of `piece_bytes`: commands are written again,
/// and errors are in braces.
fn read(template: &str, piece_bytes: usize) -> String {
    let (mut parser, mut text) = (Parser::new(8), Vec::new());
    for piece in template.as_bytes().chunks(piece_bytes) {
        let mut at = 0;
        loop {
            let (taken, event) = parser.feed(&piece[at..], &mut text);
            at += taken;
            match event {
                Event::NeedsMore => break,
                Event::Command(command) => {
                    command.write(&mut text);
                    parser.reuse(command);
                }
                Event::Error(error) => text.extend_from_slice(format!("{{{error}}}").as_bytes()),
            }
        }
    }
    parser.finish(&mut text);
    String::from_utf8(text).unwrap()
}

/// A template and its result; empty if they are equal.
const CASES: &[(&str, &str)] = &[
    ("text", ""),
    ("", ""),
    ("<!--#a -->", ""),
    ("x<!--#a b=\"c\" d='e' -->y", ""),
    ("<!--# a\tb = \"c\"-->", "<!--#a b=\"c\" -->"),
    ("<<!--<!--#a -->", ""),
    ("<!-- comment --><!-", ""),
    ("<!--#a b=\"-->\" -->", ""),
    ("<!--#a b='\\'\"' -->", ""),
    ("<!--#a b=\"\\\\\" -->", ""),
    ("x<!--#", "x"),
    ("x<!--#a b=\"", "x"),
    ("<!--#-->", "<!--# -->"),
    (
        "<!--#a b=\"123456789\" -->x",
        "{too long value of \"b\" parameter in \"a\" SSI command}x",
    ),
    (
        "<!--#a b c-->x",
        "{unexpected \"c\" symbol after \"b\" parameter in \"a\" SSI command}x",
    ),
    (
        "<!--#a b-->x",
        "{unexpected \"-\" symbol after \"b\" parameter in \"a\" SSI command}x",
    ),
    (
        "<!--#a b=c-->x",
        "{unexpected \"c\" symbol before value of \"b\" parameter in \"a\" SSI command}x",
    ),
    (
        "<!--#a b=\"c\"d-->x",
        "{unexpected \"d\" symbol after value of \"b\" parameter in \"a\" SSI command}x",
    ),
    (
        "<!--#a -b--->x",
        "{unexpected \"b\" symbol in \"a\" SSI command}x",
    ),
    (
        "<!--#aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -->x",
        "{the \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" SSI command is too long}x",
    ),
];

#[test]
fn templates_are_read_at_once_and_byte_by_byte() {
    for (template, expected) in CASES {
        let expected = if expected.is_empty() {
            template
        } else {
            expected
        };
        for piece_bytes in [1, 3, 1000] {
            assert_eq!(read(template, piece_bytes), **expected, "{template}");
        }
    }
}
