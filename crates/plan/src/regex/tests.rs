//! Tests of results, limits and costs.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use turnpike_lane::sys::pcre;

use super::{Allowance, Case, FIRST_BACKTRACKS, Groups, LANE_STEPS, OFF_LANE_STEPS};
use super::{Programs, Regex, limits};

fn regex(pattern: &str) -> Regex {
    Regex::case_sensitive(pattern, " in /c:1").unwrap()
}

#[test]
fn invalid_patterns_are_refused_with_nginxs_messages() {
    for (pattern, expected) in [
        ("(", "missing closing parenthesis in \"(\""),
        ("a)b", "unmatched closing parenthesis in \"a)b\" at \")b\""),
        (
            "*ab",
            "quantifier does not follow a repeatable item in \"*ab\" at \"ab\"",
        ),
        (
            "[z-a]",
            "range out of order in character class in \"[z-a]\" at \"]\"",
        ),
        (
            "a{2,1}",
            "numbers out of order in {} quantifier in \"a{2,1}\"",
        ),
        (
            "(*NO)a",
            "(*VERB) not recognized or malformed in \"(*NO)a\" at \"a\"",
        ),
    ] {
        let error = Regex::case_sensitive(pattern, " in /c:1").unwrap_err();
        let message = error.to_string();
        let start = "pcre2_compile() failed: ";
        let rest = message.strip_prefix(start).unwrap();
        // For some errors the position differs by a byte between versions of PCRE2.
        let words = expected.split(" at ").next().unwrap();
        assert!(rest.starts_with(words), "{message} is not {expected}");
        let at = rest.strip_prefix(words).unwrap();
        let ends = at.is_empty() || pattern.ends_with(&at[" at \"".len()..at.len() - 1]);
        assert!(ends, "{message}");
    }
}

#[test]
fn verbs_at_the_start_of_a_pattern_are_kept() {
    for (pattern, subject, expected) in [
        ("(*UTF)^.$", "\u{e9}", Ok(true)),
        ("^.$", "\u{e9}", Ok(false)),
        ("(*UTF)(*UCP)^\\w$", "\u{e9}", Ok(true)),
        ("(*NO_JIT)^(a|b)+$", "abab", Ok(true)),
        ("(*CRLF)^a$", "a", Ok(true)),
        ("(*LIMIT_MATCH=3)^(a|ab)(c|bcd)(d*)+e", "abcdfe", Err(())),
    ] {
        let mut groups = Groups::new();
        let program = regex(pattern).program;
        let found = program.on_lane(
            subject.as_bytes(),
            &mut Allowance::LANE.clone(),
            &mut groups,
        );
        assert_eq!(found.map_err(drop), expected, "{pattern}");
    }
}

/// Pattern, subject, and the result without limits.
fn hostile() -> Vec<(&'static str, Vec<u8>, bool)> {
    let joined = |start: &str, text: &str, count: usize, end: &str| {
        [start, &text.repeat(count), end].concat().into_bytes()
    };
    vec![
        (
            r"^/px2/(.*)/(.*)/(.*)/admin",
            joined("/px2", "/a", 75, "/admix-n"),
            false,
        ),
        (
            r"^/px2/(.*)/(.*)/(.*)/admin",
            joined("/px2", "/a", 75, "/admin"),
            true,
        ),
        (
            r"([a-z]+/)+secret",
            joined("", "abc/", 700, "secre-t"),
            false,
        ),
        (
            r"(\.\./)+etc/passwd",
            joined("", "../", 1400, "etc/passwd"),
            true,
        ),
        (r"^(a+)+$", joined("", "a", 20, "b"), false),
        (r"(x)+y", joined("", "x", 3000, ";y"), false),
        (r"^(.*?,){11}P", joined("", "1,", 13, "xP"), false),
        (r"(.*)a(.*)b(.*)c", joined("", "a", 300, "c"), false),
        (r"(\w+)\s\1x", joined("", "ab ", 1000, "x"), false),
        (r"[a-z]{50}1", joined("", "a", 30_000, "-1"), false),
    ]
}

#[test]
fn a_hostile_subject_takes_no_more_steps_of_a_lane_than_its_allowance() {
    let mut unfinished = 0;
    for (pattern, subject, expected) in hostile() {
        let program = regex(pattern).program;
        let (mut groups, mut allowance) = (Groups::new(), Allowance::LANE);
        match program.on_lane(&subject, &mut allowance, &mut groups) {
            Ok(found) => assert_eq!(found, expected, "{pattern}"),
            Err(failure) => {
                assert!(failure.is_limit(), "{pattern}: {failure:?}");
                assert_eq!(allowance.steps, 0, "{pattern}");
                unfinished += 1;
            }
        }
        let mut allowance = Allowance::OFF_LANE;
        match program.off_lane(&subject, &mut allowance, &mut groups) {
            Ok(found) => {
                assert_eq!(found, expected, "{pattern}");
                assert!(allowance.steps > 0);
            }
            Err(failure) => assert!(failure.is_limit(), "{pattern}: {failure:?}"),
        }
    }
    assert!(unfinished >= 6, "{unfinished}: no case is heavy any more");
}

/// The bound is well under 5 ms: 20 ns a step in compiled code, 60 ns in the interpreter, 1 ns per
/// compared byte.
#[test]
fn an_allowance_takes_less_than_five_milliseconds() {
    let Allowance { work, steps } = Allowance::LANE;
    assert!(work + steps * 60 <= 5_000_000);
    assert!(work + steps * 20 <= 3_000_000);
    let most_ms = OFF_LANE_STEPS * 20 / 1_000_000;
    assert!(most_ms <= 500);
}

#[test]
fn ordinary_patterns_need_no_counting() {
    let mut allowance = Allowance::LANE;
    let mut groups = Groups::new();
    for (pattern, subject, expected) in [
        (r"\.php$", "/index.php", true),
        (r"^/api/v(\d+)/(.*)$", "/api/v2/users/12", true),
        (
            r"\.(?:css|js|jpe?g|gif|ico|png|svg|woff2?)$",
            "/static/app.min.js",
            true,
        ),
        (r"/\.", "/a/b/c", false),
        (r"^(.+?\.php)(/.*)$", "/index.php/a/b", true),
    ] {
        let program = regex(pattern).program;
        let found = program.on_lane(subject.as_bytes(), &mut allowance, &mut groups);
        assert_eq!(found, Ok(expected), "{pattern}");
    }
    assert_eq!(allowance.steps, LANE_STEPS);
}

#[test]
fn repetitions_of_a_group_end_neither_at_the_stack_nor_at_a_limit() {
    let mut groups = Groups::new();
    for (pattern, count) in [("^(x)+$", 12_000), ("^(?:x|y)+$", 12_000), ("^(x)+$", 1366)] {
        let program = regex(pattern).program;
        let subject = b"x".repeat(count);
        let found = program.on_lane(&subject, &mut Allowance::LANE.clone(), &mut groups);
        assert_eq!(found, Ok(true), "{pattern} {count}");
        assert_eq!(groups[0], Some((0, count)));
    }
    // Compiled code has not enough stack for this one, so the interpreter runs it.
    std::thread::spawn(|| {
        pcre::use_stack(64 * 1024);
        let program = regex("^((x)|(y))+$").program;
        let subject = b"xy".repeat(16_000);
        let (mut groups, mut allowance) = (Groups::new(), Allowance::OFF_LANE);
        let found = program.off_lane(&subject, &mut allowance, &mut groups);
        assert_eq!(found, Ok(true));
        assert_eq!(groups[0], Some((0, 32_000)));
    })
    .join()
    .unwrap();
}

/// A pattern too large for counted code is limited by its worst case.
#[test]
fn a_huge_pattern_is_matched_without_counting() {
    let words: Vec<String> = (0..1500).map(|number| format!("word{number:05}")).collect();
    let program = regex(&format!("^/(?:{})$", words.join("|"))).program;
    assert!(program.counted.is_none(), "it is not too large");
    let mut groups = Groups::new();
    for (subject, expected) in [("/word01499", true), ("/word01500", false)] {
        let mut allowance = Allowance::LANE;
        let found = program.on_lane(subject.as_bytes(), &mut allowance, &mut groups);
        assert_eq!(found, Ok(expected));
        assert!(allowance.work < Allowance::LANE.work);
    }
    let mut spent = Allowance { work: 0, steps: 0 };
    let found = program.on_lane(b"/word01499", &mut spent, &mut groups);
    assert!(found.unwrap_err().is_limit());
}

/// Pseudorandom numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    fn pattern(&mut self, depth: usize) -> String {
        const ITEMS: &[&str] = &["a", "b", "/", ".", "[ab]", "[^/]", r"\w", "ab", r"\b"];
        const QUANTIFIERS: &[&str] = &["", "", "", "*", "+", "?", "*?", "++", "{2,3}", "{1,}"];
        let mut text = String::new();
        for _ in 0..=self.below(3) {
            match self.below(6) {
                0 if depth > 0 => {
                    const OPEN: &[&str] = &["(", "(?:", "(?>", "(?=", "(?!", "("];
                    text += OPEN[self.below(OPEN.len())];
                    text += &self.pattern(depth - 1);
                    if self.below(2) == 0 {
                        text += "|";
                        text += &self.pattern(depth - 1);
                    }
                    text += ")";
                }
                _ => text += ITEMS[self.below(ITEMS.len())],
            }
            text += QUANTIFIERS[self.below(QUANTIFIERS.len())];
        }
        text
    }

    fn subject(&mut self) -> Vec<u8> {
        let length = self.below(60);
        (0..length).map(|_| b"aab/c"[self.below(5)]).collect()
    }
}

/// The bound on plain code is not exceeded, and counting changes no result.
#[test]
fn counted_and_plain_code_agree() {
    let mut numbers = Numbers(1);
    let (mut compared, mut matched) = (0, 0);
    for _ in 0..3000 {
        let pattern = numbers.pattern(3);
        let Ok(regex) = Regex::case_sensitive(&pattern, "") else {
            continue;
        };
        let program = regex.program;
        let subject = numbers.subject();
        let (mut plain_groups, mut groups) = (Groups::new(), Groups::new());
        let mut first = limits(FIRST_BACKTRACKS, 1024);
        let Ok(plain) = program
            .plain
            .search(&subject, &mut first, &mut plain_groups)
        else {
            continue;
        };
        let mut allowance = Allowance::OFF_LANE;
        let counted = program.off_lane(&subject, &mut allowance, &mut groups);
        assert_eq!(counted, Ok(plain), "{pattern} {subject:?}");
        if plain {
            assert_eq!(groups, plain_groups, "{pattern} {subject:?}");
            matched += 1;
        }
        let steps = OFF_LANE_STEPS - allowance.steps;
        let bound = program.cost.of_backtrack(subject.len()) * u64::from(FIRST_BACKTRACKS);
        assert!(
            steps <= bound.max(8),
            "{pattern}: {steps} steps, {bound} bytes"
        );
        compared += 1;
    }
    assert!(compared > 1500 && matched > 300, "{compared} {matched}");
}

#[test]
fn patterns_that_are_written_alike_have_one_program() {
    let mut programs = Programs::default();
    let mut shared = |pattern, case| Regex::shared(pattern, case, "", &mut programs).unwrap();
    let first = shared("a(b)", Case::Sensitive);
    for (pattern, case, is_one) in [
        ("a(b)", Case::Sensitive, true),
        ("a(b)", Case::Ignored, false),
        ("a(b) ", Case::Sensitive, false),
    ] {
        let other = shared(pattern, case);
        let same = Arc::ptr_eq(first.program(), other.program());
        assert_eq!(same, is_one, "{pattern} {case:?}");
    }
    assert!(Regex::shared("(", Case::Sensitive, "", &mut programs).is_err());
}

#[test]
fn programs_for_checks_find_the_same() {
    for (pattern, text) in [
        ("^a(b|c)+$", "abcbc"),
        ("^a(b|c)+$", "abd"),
        (r"(?<=x)\d{2}", "x12"),
        ("(a*)*b", "aaaaaaaaaaaaaaaaaaaa"),
    ] {
        let fast = Regex::new(pattern, Case::Sensitive, "").unwrap();
        let checked = Regex::check(pattern, Case::Sensitive).unwrap();
        let text = text.as_bytes();
        assert_eq!(fast.decide(text), checked.decide(text), "{pattern}");
        assert_eq!(fast.group_count(), checked.group_count(), "{pattern}");
    }
}
