//! Patterns in a fixed order: the first match counts.

use std::sync::Arc;

use crate::pattern::{Matcher, Pattern};
use crate::regex::{Automaton, Purpose, Undecided};

/// Patterns with their values.
pub struct PatternList<T> {
    patterns: Vec<(Arc<Pattern>, T)>,
    /// Finds the patterns that may match; `None`: any may.
    automaton: Option<Box<Automaton>>,
}

impl<T> Default for PatternList<T> {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            automaton: None,
        }
    }
}

impl<T: Copy> PatternList<T> {
    /// Adds a pattern after the others.
    pub fn add(&mut self, pattern: Arc<Pattern>, value: T) {
        self.patterns.push((pattern, value));
        self.automaton = None;
    }

    /// Prepares for matches, if that is the purpose; called once, after the last pattern was added.
    /// Without it look-ups are only slower.
    pub fn finish(&mut self, purpose: Purpose) {
        if purpose == Purpose::Check {
            return;
        }
        let regexes = self.patterns.iter().map(|(pattern, _)| &pattern.regex);
        self.automaton = Automaton::new(regexes).map(Box::new);
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The value of the first pattern that matches `text`, with its groups in the matcher.
    ///
    /// # Errors
    /// An earlier pattern had no result.
    pub fn first<M: Matcher>(&self, matcher: &M, text: &[u8]) -> Result<Option<T>, Undecided> {
        let Some(automaton) = &self.automaton else {
            for (pattern, value) in &self.patterns {
                if matcher.matches(pattern, text)? {
                    return Ok(Some(*value));
                }
            }
            return Ok(None);
        };
        let candidates = matcher.with_allowance(|allowance| automaton.candidates(text, allowance));
        let mut first = Ok(None);
        let mut number = 0;
        while let Some(candidate) = candidates.first_from(number)
            && let Some((pattern, value)) = self.patterns.get(candidate)
        {
            first = matcher
                .matches(pattern, text)
                .map(|matches| matches.then_some(*value));
            if !matches!(first, Ok(None)) {
                break;
            }
            number = candidate + 1;
        }
        first
    }
}
