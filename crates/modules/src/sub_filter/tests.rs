use std::sync::Arc;

use super::body::Replacing;
use super::strings::{Strings, Times};

/// A text with its pieces cut at every place, and what becomes of it.
fn replaced(rules: &[(&str, &str)], times: Times, text: &str) -> Vec<String> {
    let strings: Vec<Vec<u8>> = rules.iter().map(|(s, _)| s.as_bytes().to_vec()).collect();
    let strings = Arc::new(Strings::new(&strings, times).expect("small enough"));
    let texts = rules.iter().map(|(_, text)| text.as_bytes().to_vec());
    let replacements: Arc<[Vec<u8>]> = texts.collect();
    let cut_at = |cut: usize| {
        let mut filter = Replacing::new(Arc::clone(&strings), Arc::clone(&replacements), times);
        let mut out = Vec::new();
        filter.replace(&text.as_bytes()[..cut], false, &mut out);
        filter.replace(&text.as_bytes()[cut..], true, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    (0..=text.len()).map(cut_at).collect()
}

/// Strings with their replacements, how often each is replaced, a text, and what it becomes.
type Case<'a> = (&'a [(&'a str, &'a str)], Times, &'a str, &'a str);

#[test]
fn strings_are_replaced_wherever_pieces_end() {
    let cases: &[Case<'_>] = &[
        (&[("aab", "+")], Times::Always, "aaabAAB", "a++"),
        (
            &[("aab", "+"), ("yyz", "-")],
            Times::Once,
            "yyzyyzaabaabyyz",
            "-yyz+aabyyz",
        ),
        // The one that begins first, then the one that is named first.
        (
            &[("bc", "1"), ("abcx", "2")],
            Times::Always,
            "abcabcx",
            "a12",
        ),
        (&[("ab", "1"), ("abc", "2")], Times::Always, "abcab", "1c1"),
        (&[("abc", "2"), ("ab", "1")], Times::Always, "abcab", "21"),
        (
            &[("abc", "2"), ("bx", "1"), ("ab", "0")],
            Times::Once,
            "abcabcabx",
            "20ca1",
        ),
        (&[("a", "aa")], Times::Always, "aba", "aabaa"),
        (&[("abc", "")], Times::Always, "xabcab", "xab"),
        (&[("abc", "x")], Times::Once, "ababcabc", "abxabc"),
    ];
    for (rules, times, text, expected) in cases {
        for (cut, got) in replaced(rules, *times, text).iter().enumerate() {
            assert_eq!(got, expected, "{rules:?} on {text} cut at {cut}");
        }
    }
}

#[test]
fn a_thousand_strings_are_looked_for_at_once() {
    let names: Vec<String> = (0..1000).map(|number| format!("<{number}>")).collect();
    let rules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let text: String = names.iter().rev().map(String::as_str).collect();
    let strings: Vec<Vec<u8>> = rules.iter().map(|(s, _)| s.as_bytes().to_vec()).collect();
    let strings = Arc::new(Strings::new(&strings, Times::Once).expect("small enough"));
    let replacements: Arc<[Vec<u8>]> = vec![b"x".to_vec(); 1000].into();
    let mut filter = Replacing::new(strings, replacements, Times::Once);
    let mut out = Vec::new();
    filter.replace(text.as_bytes(), false, &mut out);
    filter.replace(text.as_bytes(), true, &mut out);
    assert_eq!(out, ["x".repeat(1000).as_bytes(), text.as_bytes()].concat());
}

#[test]
fn nothing_is_held_back_that_begins_no_string() {
    let strings =
        Strings::new(&[b"za".to_vec(), b"abcd".to_vec()], Times::Always).expect("small enough");
    for (text, begun) in [
        ("xyz", 2),
        ("xya", 2),
        ("xab", 1),
        ("xABC", 1),
        ("xyb", 3),
        ("", 0),
    ] {
        assert_eq!(strings.begun(text.as_bytes()), begun, "{text}");
    }
}
