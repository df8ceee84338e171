//! Regular expressions of the configuration, in Perl's syntax as nginx reads them.
//!
//! PCRE2 underneath, since users' patterns use lookaround, atomic groups and possessive
//! quantifiers. A pattern can be made to backtrack for hours, and a match holds its whole lane. So
//! a match ends in one of three ways: match, no match, or no verdict, and the last one is never
//! taken for either of the others.
//!
//! ```text
//!  what it may cost at worst fits the turn? ─yes─► compiled code, few backtracks ─► verdict
//!           │ no                                          │ more of them
//!           └───────────► counted code, steps of the turn ◄┘ ─► verdict
//!                                    │ used up
//!             may the request wait? ─┴─no──► no verdict: 500
//!                   │ yes
//!                   ▼
//!             off the lane, many more steps ─► verdict, or none: 500
//! ```
//!
//! What a match may cost is known beforehand ([`cost`]) or counted while it goes on; a clock has
//! no part in it. The allowance is the request's, for all its patterns together, and is granted
//! anew only when the lane has served others meanwhile. Whether a match may wait, and for which
//! thread, is its protocol's business.

mod automaton;
mod cost;
mod superset;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use turnpike_conf::bytes_of;
use turnpike_lane::sys::pcre::{Code, Counting, Limits, MatchFailure};

pub use automaton::Automaton;
use cost::Cost;
pub use cost::{LANE_STEPS, LANE_WORK, OFF_LANE_STEPS};

/// Backtracks of the first attempt: ordinary patterns take none or a few. Its whole possible cost
/// is charged, so that more would leave less for the patterns that follow.
const FIRST_BACKTRACKS: u32 = 16;

/// Backtracks for which a first attempt is not worth its charge.
const FIRST_BACKTRACKS_MIN: u32 = 4;

/// Memory of the interpreter on a lane, in KiB. It is kept for the next match, on each lane.
const LANE_HEAP_KIB: u32 = 1024;

/// Memory of the interpreter off the lanes, in KiB. It is given back after each match.
const OFF_LANE_HEAP_KIB: u32 = 64 * 1024;

/// A compiled pattern with the names of its groups.
#[derive(Debug)]
pub struct Regex {
    pattern: String,
    caseless: bool,
    place: Box<str>,
    names: Vec<(usize, String)>,
    program: Arc<Program>,
}

/// The compiled codes of a pattern: what another thread needs to match it.
#[derive(Debug)]
pub struct Program {
    /// Tells programs apart, in what a request remembers of its matches.
    pub serial: u64,
    plain: Code,
    /// The code that counts; `None` where it would be too large for PCRE2, whose limit is 64 KB
    /// and which needs 6 bytes for each item of the pattern: then the plain one is held to what
    /// it may cost at worst.
    counted: Option<Code>,
    cost: Cost,
}

/// What matches may cost until the lane turns to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// For code that does not count: the most that it can do, in bytes compared.
    pub work: u64,
    /// For code that counts.
    pub steps: u64,
}

/// A match ended without a verdict. The subject knows; whoever gets this stops and lets no value of
/// it go anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided;

/// What a match captured: the subject and, for each group, where it stands in it.
#[derive(Debug, Default, Clone)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Groups,
}

/// Where groups stand, the whole match first.
pub type Groups = Vec<Option<(usize, usize)>>;

impl Allowance {
    /// What a request may use before it lets others have their turn.
    pub const LANE: Allowance = Allowance {
        work: LANE_WORK,
        steps: LANE_STEPS,
    };
    /// What one match may use off the lanes.
    pub const OFF_LANE: Allowance = Allowance {
        work: cost::OFF_LANE_WORK,
        steps: OFF_LANE_STEPS,
    };
}

impl Regex {
    /// Compiles `pattern`; `place` is where it stands (`in FILE:LINE`), for what is logged of it,
    /// and empty for a pattern that is only checked.
    ///
    /// # Errors
    /// PCRE2's text, in the frame that nginx gives it.
    pub fn new(pattern: &str, caseless: bool, place: &str) -> Result<Self, String> {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        let bytes = bytes_of(pattern);
        let plain = Code::compile(&bytes, caseless, Counting::Backtracks).map_err(|error| {
            let message = error.message;
            match bytes.get(error.offset..) {
                None | Some([]) => format!("pcre2_compile() failed: {message} in \"{pattern}\""),
                Some(rest) => {
                    let rest = turnpike_conf::text_of(rest);
                    format!("pcre2_compile() failed: {message} in \"{pattern}\" at \"{rest}\"")
                }
            }
        })?;
        let cost = Cost::of(&bytes, &plain);
        let program = Program {
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            counted: Code::compile(&bytes, caseless, Counting::Steps).ok(),
            plain,
            cost,
        };
        Ok(Self {
            pattern: pattern.to_owned(),
            caseless,
            place: place.into(),
            names: program.plain.names(),
            program: Arc::new(program),
        })
    }

    /// The compiled codes.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// A language that holds all texts in which it matches, where an automaton can be made of it.
    fn language(&self) -> Option<regex_syntax::hir::Hir> {
        automaton::language(&bytes_of(&self.pattern), self.caseless)
    }

    /// Named groups: number and name.
    pub fn names(&self) -> &[(usize, String)] {
        &self.names
    }

    /// How many groups the pattern has, the whole match not counted.
    pub fn group_count(&self) -> usize {
        self.program.plain.group_count()
    }

    /// Whether `subject` matches, for threads that are no lane: it may take a quarter of a second.
    /// What belongs to a request is asked through its exchange.
    ///
    /// # Errors
    /// When there is no verdict: says why.
    pub fn decide(&self, subject: &[u8]) -> Result<bool, String> {
        let mut allowance = Allowance::OFF_LANE;
        self.program
            .off_lane(subject, &mut allowance, &mut Groups::new())
            .map_err(|failure| {
                self.failed(failure.message(), failure.0, subject)
                    .to_string()
            })
    }

    /// The line of the error log about a match without a verdict, in nginx's words with the place
    /// behind them.
    pub fn failed<'a>(
        &'a self,
        message: impl fmt::Display + 'a,
        code: i32,
        subject: &'a [u8],
    ) -> impl fmt::Display + 'a {
        /// Bytes of the subject that a line of the log quotes: enough to know it again.
        const SUBJECT_BYTES_MAX: usize = 200;
        fmt::from_fn(move |formatter| {
            let (head, dots) = match subject.get(..SUBJECT_BYTES_MAX) {
                Some(head) => (head, "..."),
                None => (subject, ""),
            };
            let (head, pattern, place) = (crate::Quoted(head), &self.pattern, &self.place);
            write!(
                formatter,
                "pcre2_match() failed: {code} ({message}) on \"{head}{dots}\" \
                 using \"{pattern}\"{place}"
            )
        })
    }
}

impl Program {
    /// Matches on a lane, at the expense of its allowance.
    pub fn on_lane(
        &self,
        subject: &[u8],
        allowance: &mut Allowance,
        groups: &mut Groups,
    ) -> Result<bool, MatchFailure> {
        let unit = self.cost.of_backtrack(subject.len());
        let affordable = u32::try_from(allowance.work / unit).unwrap_or(u32::MAX);
        let backtracks = affordable.min(FIRST_BACKTRACKS);
        if backtracks >= FIRST_BACKTRACKS_MIN {
            allowance.work -= unit * u64::from(backtracks);
            let mut limits = limits(backtracks, LANE_HEAP_KIB);
            match self.plain.search(subject, &mut limits, groups) {
                Err(failure) if failure.is_limit() || failure.is_stack() => {}
                verdict => return verdict,
            }
        }
        self.counted(subject, allowance, LANE_HEAP_KIB, groups)
    }

    /// Matches where nobody else has to wait for it.
    pub fn off_lane(
        &self,
        subject: &[u8],
        allowance: &mut Allowance,
        groups: &mut Groups,
    ) -> Result<bool, MatchFailure> {
        if self.counted.is_some() {
            return self.counted(subject, allowance, OFF_LANE_HEAP_KIB, groups);
        }
        let affordable = allowance.work / self.cost.of_backtrack(subject.len());
        let backtracks = u32::try_from(affordable).unwrap_or(u32::MAX);
        if backtracks == 0 {
            return Err(MatchFailure::LIMIT);
        }
        let mut limits = limits(backtracks, OFF_LANE_HEAP_KIB);
        match self.plain.search(subject, &mut limits, groups) {
            Err(failure) if failure.is_stack() => {
                limits.interpreted = true;
                self.plain.search(subject, &mut limits, groups)
            }
            verdict => verdict,
        }
    }

    /// Matches with the code that counts; in the interpreter when the compiled code's stack does
    /// not suffice.
    fn counted(
        &self,
        subject: &[u8],
        allowance: &mut Allowance,
        heap_kib: u32,
        groups: &mut Groups,
    ) -> Result<bool, MatchFailure> {
        let Some(counted) = &self.counted else {
            return Err(MatchFailure::LIMIT);
        };
        let before_first_item = self.cost.steps_before_first_item(subject.len());
        let mut limits = Limits {
            steps: allowance.steps.saturating_sub(before_first_item),
            steps_per_item: self.cost.steps_per_item(subject.len()),
            ..limits(BACKTRACKS_MAX, heap_kib)
        };
        let mut verdict = counted.search(subject, &mut limits, groups);
        if let Err(failure) = verdict
            && failure.is_stack()
        {
            limits.interpreted = true;
            verdict = counted.search(subject, &mut limits, groups);
        }
        allowance.steps = limits.steps;
        verdict
    }
}

/// Backtracks where steps are counted: as many as there can be.
const BACKTRACKS_MAX: u32 = u32::MAX;

fn limits(backtracks: u32, heap_kib: u32) -> Limits {
    Limits {
        backtracks,
        steps: 0,
        steps_per_item: 0,
        heap_kib,
        interpreted: false,
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

    /// Keeps another match: its subject, and where the groups stand in it.
    pub fn set(&mut self, subject: &[u8], groups: &[Option<(usize, usize)>]) {
        self.clear();
        self.subject.extend_from_slice(subject);
        self.groups.extend_from_slice(groups);
    }
}
