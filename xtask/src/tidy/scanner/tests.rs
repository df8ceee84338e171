//! The scanner against the texts that fool a search by pattern.
#![allow(clippy::unwrap_used)]

use super::{Function, Source, Token};

#[test]
fn literals_and_comments_leave_no_words() {
    let cases = [
        ("// unsafe", ""),
        ("/* unsafe /* unsafe */ unsafe */ a", "a"),
        (r#"a("unsafe \" unsafe") b"#, "a b"),
        ("r#\"unsafe \" \"# b", "b"),
        ("br##\"}\"# unsafe\"## c", "c"),
        ("b'{' d", "d"),
        (r"'\'' e", "e"),
        (r"'\u{7d}' e", "e"),
        ("'{' f", "f"),
        ("'é' g", "g"),
        ("fn h<'a>(x: &'a str)", "fn h a x a str"),
        ("1_000u64 i 0xff", "i"),
    ];
    for (text, expected) in cases {
        let source = Source::scan(text);
        let words: Vec<&str> = (0..source.tokens.len())
            .filter_map(|at| source.word(at))
            .collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }
}

#[test]
fn functions_are_measured_with_their_signature() {
    let text = "fn a();\nfn b(\n  x: [u8; 2],\n) {\n  let c = || { 1 };\n}\nimpl T { fn d() {} }\n";
    let expected = [
        Function {
            name: "b".to_owned(),
            line: 2,
            lines: 5,
        },
        Function {
            name: "d".to_owned(),
            line: 7,
            lines: 1,
        },
    ];
    assert_eq!(Source::scan(text).functions(), expected);
}

#[test]
fn a_path_attribute_keeps_its_text_and_line() {
    let source = Source::scan("\n#[path = \"x/y.rs\"]\nmod y;");
    assert_eq!(source.strings, [(2, "x/y.rs".to_owned())]);
    assert_eq!(source.tokens.last().unwrap().token, Token::Mark(';'));
}
