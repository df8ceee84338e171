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
