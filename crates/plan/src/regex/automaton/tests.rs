//! A comparison of the automaton with PCRE2: a pattern that matches must be a candidate.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::regex::Case;

fn regexes(patterns: &[(&str, Case)]) -> Vec<Regex> {
    let regex = |(pattern, case): &(&str, Case)| Regex::new(pattern, *case, "").unwrap();
    patterns.iter().map(regex).collect()
}

/// The candidates for a text, and the cost of the search.
fn candidates(automaton: &Automaton, text: &[u8]) -> (Vec<usize>, u64) {
    let mut allowance = Allowance::LANE;
    let candidates = automaton.candidates(text, &mut allowance);
    let mut numbers = Vec::new();
    while let Some(number) = candidates.first_from(numbers.last().map_or(0, |last| last + 1))
        && number < 1000
    {
        numbers.push(number);
    }
    (numbers, Allowance::LANE.work - allowance.work)
}

/// Usual patterns. One begins with a verb, so that only PCRE2 can handle it.
const PATTERNS: &[(&str, Case)] = &[
    ("\\.php$", Case::Sensitive),
    ("^/images/.*\\.(gif|jpe?g|png)$", Case::Ignored),
    ("^/user/(?<id>[0-9]+)/?$", Case::Sensitive),
    ("/\\.(?!well-known)", Case::Sensitive),
    ("^/a{2,3}[^/]*$", Case::Sensitive),
    ("^/(\\w+)/\\1$", Case::Sensitive),
    ("(?i)^/CASE", Case::Sensitive),
    ("^/[[:alpha:]]{3}-\\d\\d$", Case::Sensitive),
    ("(*UTF)^/utf", Case::Sensitive),
    ("^/x{20}$", Case::Sensitive),
    ("(?>a+)b", Case::Sensitive),
];

const CANDIDATES_OF: &[(&str, &[usize])] = &[
    ("/", &[8]),
    ("/index.php", &[0, 8]),
    ("/index.PHP", &[8]),
    ("/images/a.JPG", &[1, 5, 8]),
    ("/user/12/", &[2, 5, 8]),
    ("/user/12/x", &[5, 8]),
    // Only PCRE2 handles assertions and back references.
    ("/.well-known/a.php", &[0, 3, 8]),
    ("/aab", &[4, 8, 10]),
    ("/one/two", &[5, 8]),
    ("/case/x", &[5, 6, 8]),
    ("/abc-12", &[7, 8, 10]),
    ("/xxxxxxxxxxxxxxxxxxxx", &[8, 9]),
    // The repetition exceeds the pattern's count, which PCRE2 checks.
    ("/xxxxxxxxxxxxxxxxxxxxx", &[8, 9]),
];

#[test]
fn few_patterns_are_candidates() {
    let automaton = Automaton::new(regexes(PATTERNS).iter()).unwrap();
    for (text, expected) in CANDIDATES_OF {
        assert_eq!(
            candidates(&automaton, text.as_bytes()).0,
            *expected,
            "{text}"
        );
    }
}

#[test]
fn states_are_made_once_and_their_cost_is_limited() {
    let automaton = Automaton::new(regexes(PATTERNS).iter()).unwrap();
    let text = b"/images/some/where/a.jpeg";
    let (_, first) = candidates(&automaton, text);
    let (_, second) = candidates(&automaton, text);
    assert!(second < first / 4, "{first} {second}");
    // All patterns are candidates if the search would cost too much.
    let long: Vec<u8> = (0..20_000_u32)
        .map(|at| (at * at % 251) as u8 | 1)
        .collect();
    let automaton = Automaton::new(regexes(PATTERNS).iter()).unwrap();
    let mut allowance = Allowance {
        work: 20_000,
        ..Allowance::LANE
    };
    let found = automaton.candidates(&long, &mut allowance);
    assert!((0..PATTERNS.len()).all(|number| found.first_from(number) == Some(number)));
    assert!(allowance.work >= 10_000);
}

#[test]
fn few_patterns_need_no_automaton() {
    assert!(Automaton::new(regexes(&PATTERNS[..2]).iter()).is_none());
}

#[test]
fn texts_that_end_like_a_line_are_left_to_pcre2() {
    let automaton = Automaton::new(regexes(PATTERNS).iter()).unwrap();
    let all: Vec<usize> = (0..PATTERNS.len()).collect();
    let found = candidates(&automaton, b"/a.php\n").0;
    assert_eq!(found[..all.len()], all);
}

#[test]
fn rarely_used_states_are_freed() {
    let automata: Vec<Automaton> = (0..KEPT_MAX + 3)
        .map(|_| Automaton::new(regexes(PATTERNS).iter()).unwrap())
        .collect();
    for automaton in automata.iter().chain(&automata) {
        assert_eq!(candidates(automaton, b"/index.php").0, [0, 8]);
    }
    assert_eq!(STATES.with_borrow(Vec::len), KEPT_MAX);
}

/// Items of patterns, some of them unusual.
const ITEMS: &[&str] = &[
    "a",
    "b",
    "A",
    "/",
    ".",
    "\\.",
    "\\d",
    "\\w",
    "\\S",
    "[ab]",
    "[^a]",
    "[a-c/]",
    "[]a]",
    "[^]b]",
    "[\\w-]",
    "[[:upper:]]",
    "[a&&b]",
    "[b[a]",
    "\\b",
    "\\B",
    "^",
    "$",
    "\\A",
    "\\z",
    "\\Z",
    "\\x61",
    "\\1",
    "\\Qa.\\E",
    "\\v",
    "\\h",
    "\\R",
    "\\N",
    "{",
    "}",
    "]",
    "a{",
    "a{,2}",
    "(?i)",
    "(?#a)",
    "\\<",
    "\\K",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!b)",
    "\u{e9}",
    "-",
    "&&",
    "~~",
    "\\-",
    "\\/",
    "[+--]",
    "[\\]]",
    "[^\\d\\s]",
];

/// The quantifiers after an item.
const QUANTIFIERS: &[&str] = &[
    "", "", "", "", "*", "+", "?", "*?", "++", "{2}", "{1,2}", "{2,}", "{0,40}", "{2}{2}",
];

/// Pseudorandom numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// A pattern of a few items, some of them unusual.
    fn pattern(&mut self, depth: usize) -> String {
        let mut pattern = String::new();
        for _ in 0..1 + self.below(4) {
            if depth > 0 && self.below(4) == 0 {
                let open = self.one_of(&["(", "(?:", "(?<n>", "(?i:", "(?>", "(?=", "(?!", "(?|"]);
                pattern.push_str(open);
                pattern.push_str(&self.pattern(depth - 1));
                if self.below(2) == 0 {
                    pattern.push('|');
                    pattern.push_str(&self.pattern(depth - 1));
                }
                pattern.push(')');
            } else {
                pattern.push_str(self.one_of(ITEMS));
            }
            pattern.push_str(self.one_of(QUANTIFIERS));
        }
        pattern
    }

    fn text(&mut self) -> Vec<u8> {
        const BYTES: &[u8] = b"aabbcAB/..-19&~{}]\n\r \xe9\x85";
        let length = self.below(9);
        (0..length)
            .map(|_| BYTES[self.below(BYTES.len())])
            .collect()
    }
}

#[test]
fn a_matching_pattern_is_always_a_candidate() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut matches, mut passed_over) = (0, 0);
    for _ in 0..400 {
        let mut patterns = Vec::new();
        while patterns.len() < 12 {
            let pattern = random.pattern(2);
            let case = match random.below(4) {
                0 => Case::Ignored,
                _ => Case::Sensitive,
            };
            // A pattern that PCRE2 refuses cannot be in a configuration.
            patterns.extend(Regex::new(&pattern, case, ""));
        }
        let Some(automaton) = Automaton::new(patterns.iter()) else {
            continue;
        };
        for _ in 0..40 {
            let text = random.text();
            let found = candidates(&automaton, &text).0;
            for (number, regex) in patterns.iter().enumerate() {
                let is_candidate = found.contains(&number);
                let does_match = regex.decide(&text).unwrap();
                assert!(
                    is_candidate || !does_match,
                    "{} passed over {}",
                    regex.pattern(),
                    text.escape_ascii()
                );
                matches += usize::from(does_match);
                passed_over += usize::from(!is_candidate);
            }
        }
    }
    assert!(
        matches > 10_000 && passed_over > 10_000,
        "{matches} {passed_over}"
    );
}
