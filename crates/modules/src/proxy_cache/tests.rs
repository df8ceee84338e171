//! Tests of this family.

use super::plan::StaleUses;
use super::zones::levels;
use crate::pass::Failure;

#[test]
fn levels_are_read_as_nginx_reads_them() {
    for (text, expected) in [
        ("1:2", Some(vec![1, 2])),
        ("2:2:2", Some(vec![2, 2, 2])),
        ("1", Some(vec![1])),
        ("3", None),
        ("1:2:1:1", None),
        ("", Some(Vec::new())),
        ("1:", None),
    ] {
        assert_eq!(levels(text), expected, "{text}");
    }
}

#[test]
fn stale_responses_are_used_as_the_words_say() {
    let cases = [
        ("error", Failure::NoLive, true),
        ("error", Failure::Error, true),
        ("error", Failure::Timeout, false),
        ("http_503", Failure::Status(503), true),
        ("http_503", Failure::Status(500), false),
        ("off error", Failure::Error, false),
        ("updating", Failure::Error, false),
    ];
    for (words, failure, expected) in cases {
        let uses = StaleUses::of(words.split(' '));
        assert_eq!(uses.allows(failure), expected, "{words} {failure:?}");
    }
}
