//! Regular expressions of the configuration, in Perl's syntax as nginx reads them.
//!
//! PCRE2 underneath, since users' patterns use lookaround, atomic groups and possessive
//! quantifiers. A pattern can be made to backtrack for seconds, and a match holds its whole lane,
//! so every pattern carries a match limit. This module knows no request.

use pcre2::bytes::{Regex as Pcre, RegexBuilder};

/// Backtracking steps that one match may take. PCRE2's own limit is a hundred times higher: a
/// hostile subject would then hold a lane for a tenth of a second; with this one, 0.4 ms.
const MATCH_LIMIT: u32 = 100_000;

/// A compiled pattern with the names of its groups.
#[derive(Debug)]
pub struct Regex {
    pattern: String,
    compiled: Pcre,
    names: Vec<(usize, String)>,
}

/// What a match captured: the subject and, for each group, where it stands in it.
#[derive(Debug, Default, Clone)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Vec<Option<(usize, usize)>>,
}

impl Regex {
    /// Compiles `pattern`. The error is PCRE2's text, in the frame that nginx gives it.
    pub fn new(pattern: &str, caseless: bool) -> Result<Self, String> {
        let limited = format!("(*LIMIT_MATCH={MATCH_LIMIT}){pattern}");
        let compiled = RegexBuilder::new()
            .caseless(caseless)
            .jit_if_available(true)
            .build(&limited)
            .map_err(|error| format!("pcre2_compile() failed: {error} in \"{pattern}\""))?;
        let names = compiled
            .capture_names()
            .iter()
            .enumerate()
            .filter_map(|(group, name)| Some((group, name.clone()?)))
            .collect();
        Ok(Self {
            pattern: pattern.to_owned(),
            compiled,
            names,
        })
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Named groups: number and name.
    pub fn names(&self) -> &[(usize, String)] {
        &self.names
    }

    /// How many groups the pattern has, the whole match not counted.
    pub fn group_count(&self) -> usize {
        self.compiled.captures_len().saturating_sub(1)
    }

    /// Whether `subject` matches. A match that ran into its limit counts as none.
    pub fn is_match(&self, subject: &[u8]) -> bool {
        self.compiled.is_match(subject).unwrap_or(false)
    }

    /// Matches and records the groups in `captures`, which is left as it was when nothing matches.
    pub fn captures(&self, subject: &[u8], captures: &mut Captures) -> bool {
        let mut locations = self.compiled.capture_locations();
        match self.compiled.captures_read(&mut locations, subject) {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return false,
        }
        captures.subject.clear();
        captures.subject.extend_from_slice(subject);
        captures.groups.clear();
        captures
            .groups
            .extend((0..locations.len()).map(|group| locations.get(group)));
        true
    }
}

impl Captures {
    /// The text of a group; 0 is the whole match.
    pub fn group(&self, number: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(number)?)?;
        self.subject.get(start..end)
    }

    /// Where the whole match stands in the subject.
    pub fn whole(&self) -> Option<(usize, usize)> {
        self.groups.first().copied().flatten()
    }

    /// Forgets the last match; the room is kept.
    pub fn clear(&mut self) {
        self.subject.clear();
        self.groups.clear();
    }
}
