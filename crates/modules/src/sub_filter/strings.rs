//! Finding several strings in a text that comes in pieces.

use aho_corasick::automaton::OverlappingState;
use aho_corasick::{AhoCorasick, BuildError, Input, MatchKind};

/// Strings to look for, in any case of ASCII letters.
pub(super) struct Strings {
    automaton: AhoCorasick,
    /// Whether the automaton reports every match, for those who do not want all of them.
    reports_all: bool,
    /// The strings in lower case, sorted.
    sorted: Vec<Vec<u8>>,
    bytes_max: usize,
}

/// How often each string is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// One that was found is not looked for any more.
    Once,
    Always,
}

/// Where a string stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Which one, by its place in the list.
    pub(super) string: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Strings {
    /// Strings none of which is empty.
    ///
    /// # Errors
    /// When they are too many.
    pub(super) fn new(strings: &[Vec<u8>], times: Times) -> Result<Self, BuildError> {
        let reports_all = times == Times::Once && strings.len() > 1;
        let kind = if reports_all {
            MatchKind::Standard
        } else {
            MatchKind::LeftmostFirst
        };
        let automaton = AhoCorasick::builder()
            .match_kind(kind)
            .ascii_case_insensitive(true)
            .build(strings)?;
        let mut sorted: Vec<Vec<u8>> = strings.iter().map(|s| s.to_ascii_lowercase()).collect();
        sorted.sort_unstable();
        Ok(Self {
            automaton,
            reports_all,
            bytes_max: strings.iter().map(Vec::len).max().unwrap_or(0),
            sorted,
        })
    }

    /// The first place in a text where one of the wanted strings begins.
    pub(super) fn find(&self, text: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<Found> {
        if !self.reports_all {
            let found = self.automaton.find(text)?;
            return Some(Found {
                string: found.pattern().as_usize(),
                start: found.start(),
                end: found.end(),
            });
        }
        let mut state = OverlappingState::start();
        let mut best: Option<Found> = None;
        loop {
            // What ends later than this begins behind the best.
            let end = best.map_or(text.len(), |best| best.start + self.bytes_max);
            let input = Input::new(text).range(..end.min(text.len()));
            self.automaton.find_overlapping(input, &mut state);
            let Some(found) = state.get_match() else {
                return best;
            };
            let found = Found {
                string: found.pattern().as_usize(),
                start: found.start(),
                end: found.end(),
            };
            let is_first = |best: Found| (found.start, found.string) < (best.start, best.string);
            if is_wanted(found.string) && best.is_none_or(is_first) {
                best = Some(found);
            }
        }
    }

    /// Whether nothing that the end of a text begins can begin in front of a place.
    pub(super) fn is_far_from_end(&self, found: Found, text: &[u8]) -> bool {
        found.start + self.bytes_max <= text.len()
    }

    /// Where the end of a text may be the beginning of a string; the text's length where it is not.
    pub(super) fn begun(&self, text: &[u8]) -> usize {
        let tail = text.len() - text.len().min(self.bytes_max.saturating_sub(1));
        let lower = text[tail..].to_ascii_lowercase();
        let begins = |start: &usize| {
            let end = &lower[*start..];
            let next = self.sorted.partition_point(|string| &string[..] <= end);
            self.sorted.get(next).is_some_and(|s| s.starts_with(end))
        };
        tail + (0..lower.len()).find(begins).unwrap_or(lower.len())
    }
}
