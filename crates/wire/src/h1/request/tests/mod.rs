#![allow(clippy::unwrap_used)]

use super::*;

mod fields;
mod framing;
mod judge;
mod lines;
mod strict;

/// Parses the whole text at once and again byte by byte, and checks that both find the same.
fn parse(text: &[u8], rules: &HeadRules) -> (Result<HeadStep, HeadError>, RequestHead) {
    let mut whole = RequestHead::default();
    let result = parse_request(text, 0, rules, &mut whole);
    let mut pieces = RequestHead::default();
    let mut piecewise = Ok(HeadStep::Incomplete { scanned: 0 });
    for end in 0..=text.len() {
        let Ok(HeadStep::Incomplete { scanned }) = piecewise else {
            break;
        };
        piecewise = parse_request(&text[..end], scanned, rules, &mut pieces);
    }
    assert_eq!(result, piecewise, "{:?}", String::from_utf8_lossy(text));
    if result.is_ok() {
        assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    }
    (result, whole)
}

/// nginx's rules.
fn nginx() -> HeadRules {
    HeadRules {
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    }
}

/// Parses a head that must be complete, by nginx's rules.
fn parse_whole(text: &[u8]) -> RequestHead {
    let (result, head) = parse(text, &nginx());
    assert_eq!(
        result,
        Ok(HeadStep::Complete),
        "{:?}",
        String::from_utf8_lossy(text)
    );
    head
}
