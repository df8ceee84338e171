use super::{Line, LineRules, parse_by_rules, parse_usual_line};

/// Lines and whether they are of the usual form; what has it reads the same by all rules.
#[test]
fn usual_lines_are_read_as_all_rules_read_them() {
    let table = [
        ("Host: localhost:8080\r\n\r\n", true),
        ("user-AGENT: Mozilla/5.0 (X11; Linux x86_64)\r\n\r\n", true),
        ("Accept: text/html,\t*/*\r\nHost: a\r\n\r\n", true),
        ("X-1: \u{e9}\u{ff}: b\r\n\r\n", true),
        ("Sec-CH-UA-Platform-Version-Of-28: \"6.1\"\r\n\r\n", false),
        ("Te: x\r\n\r\n", true),
        ("te:x\r\n\r\n", false),
        ("Host:  localhost\r\n\r\n", false),
        ("Host: localhost \r\n\r\n", false),
        ("Host: localhost\t\r\n\r\n", false),
        ("Host: \tlocalhost\r\n\r\n", false),
        ("Host: localhost\n\r\n\r\n", false),
        ("Host: localhost\r\r\n\r\n", false),
        ("Host: local\0host\r\n\r\n", false),
        ("Host: local\x7fhost\r\n\r\n", false),
        ("Host: \r\n\r\n\r\n", false),
        ("Host : localhost\r\n\r\n", false),
        ("user\ragent: localhost\r\n\r\n", false),
        ("X_Real_IP: 127.0.0.1\r\n\r\n", false),
        ("X!Name: value\r\n\r\n", false),
        (" Host: localhost\r\n\r\n", false),
        (": localhost\r\n\r\n", false),
        ("Host\r\n: localhost\r\n\r\n", false),
        ("\r\nHost: localhost\r\n", false),
        ("Host: localhost\r", false),
        ("Host: localhost", false),
        ("Host", false),
        ("", false),
    ];
    for (text, is_usual) in table {
        let usual = parse_usual_line(text.as_bytes(), 0);
        assert_eq!(usual.is_some(), is_usual, "{text:?}");
        let Some((field, next)) = usual else { continue };
        for manner in [LineRules::Nginx, LineRules::Request, LineRules::Response] {
            let Ok((line, end)) = parse_by_rules(text.as_bytes(), 0, manner) else {
                panic!("{text:?} is refused");
            };
            let Line::Field(read) = line else {
                panic!("{text:?} is the empty line");
            };
            assert_eq!((read, end), (field, next), "{text:?}");
        }
    }
}
