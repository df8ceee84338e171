//! Regular expressions of the configuration, in Perl's syntax as nginx reads it.
//!
//! PCRE2 matches them, since users' patterns contain lookaround, atomic groups and possessive
//! quantifiers. A pattern may backtrack for hours, and a match blocks its lane. So a match ends in
//! one of three ways: match, no match, or no result, and the last one is never treated as one of
//! the others.
//!
//! ```text
//!  what it may cost at worst fits the turn? ─yes─► compiled code, few backtracks ─► result
//!           │ no                                          │ more of them
//!           └───────────► counted code, steps of the turn ◄┘ ─► result
//!                                    │ used up
//!             may the request wait? ─┴─no──► no result: 500
//!                   │ yes
//!                   ▼
//!             off the lane, many more steps ─► result, or none: 500
//! ```
//!
//! The cost of a match is known beforehand ([`cost`]) or counted during the match; no clock is
//! read. All patterns of a request share one allowance, which is renewed only after the lane has
//! served other requests. The protocol decides whether a match may wait, and for which thread.

mod automaton;
mod cost;
mod error;
mod superset;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use turnpike_conf::bytes_of;
use turnpike_lane::sys::pcre::{Code, Counting, Limits, MatchFailure};

pub use automaton::Automaton;
use cost::Cost;
pub use cost::{LANE_STEPS, LANE_WORK, OFF_LANE_STEPS};
pub use error::RegexError;

/// The backtracks of the first attempt: usual patterns need none or a few. Its worst-case cost is
/// charged, so a larger number would leave less for the patterns after it.
const FIRST_BACKTRACKS: u32 = 16;

/// The number of backtracks below which a first attempt is not worth its charge.
const FIRST_BACKTRACKS_MIN: u32 = 4;

/// The interpreter's memory on a lane, in KiB. Each lane keeps it for the next match.
const LANE_HEAP_KIB: u32 = 1024;

/// The interpreter's memory off the lanes, in KiB. It is freed after each match.
const OFF_LANE_HEAP_KIB: u32 = 64 * 1024;

/// A compiled pattern with the names of its groups.
#[derive(Debug)]
pub struct Regex {
    pattern: String,
    case: Case,
    place: Box<str>,
    names: Vec<(usize, String)>,
    program: Arc<Program>,
}

/// What a pattern makes of upper and lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Letters of another case are other letters, as behind `~`.
    Sensitive,
    /// Letters of another case are the same, as behind `~*`.
    Ignored,
}

/// The compiled codes of a pattern, which another thread can use for a match.
#[derive(Debug)]
pub struct Program {
    /// The identity of the program in a request's record of its matches.
    pub serial: u64,
    plain: Code,
    /// The counted code. `None` if it is too large for PCRE2, whose limit is 64 KB with 6 bytes for
    /// each item of the pattern: then the plain code is used if its worst case is allowed.
    counted: Option<Code>,
    cost: Cost,
}

/// What a program is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Requests are matched: it is made fast.
    #[default]
    Matches,
    /// A configuration is checked: it has no machine code, which takes ten times as long to make as
    /// all the rest. It finds the same.
    Check,
}

/// The programs of a plan's patterns: patterns that are written alike have one.
#[derive(Debug, Default)]
pub struct Programs {
    by_pattern: HashMap<(String, Case), Arc<Program>>,
    /// What they are made for.
    pub purpose: Purpose,
}

/// The cost that matches may have before the lane serves other requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// For uncounted code: its worst case, in compared bytes.
    pub work: u64,
    /// For counted code, in steps.
    pub steps: u64,
}

/// A match ended without a result. The subject records that; the caller stops and must not use any
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided;

/// The captures of a match: the subject, and the range of each group in it.
#[derive(Debug, Default, Clone)]
pub struct Captures {
    subject: Vec<u8>,
    groups: Groups,
}

/// The ranges of groups, the whole match first.
pub type Groups = Vec<Option<(usize, usize)>>;

impl Allowance {
    /// The allowance of a request before other requests get a turn.
    pub const LANE: Allowance = Allowance {
        work: LANE_WORK,
        steps: LANE_STEPS,
    };
    /// The allowance of one match off the lanes.
    pub const OFF_LANE: Allowance = Allowance {
        work: cost::OFF_LANE_WORK,
        steps: OFF_LANE_STEPS,
    };
}

impl Case {
    /// The case of a pattern among the names of a server, which have no sign for it: nginx ignores
    /// it if the pattern has an upper-case letter.
    pub fn of_server_name(pattern: &str) -> Case {
        if pattern.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Case::Ignored
        } else {
            Case::Sensitive
        }
    }
}

impl Regex {
    /// Compiles a pattern that distinguishes upper and lower case, as behind `~`.
    ///
    /// # Errors
    /// As for [`Regex::new`].
    pub fn case_sensitive(pattern: &str, place: &str) -> Result<Self, RegexError> {
        Self::new(pattern, Case::Sensitive, place)
    }

    /// Compiles a pattern that ignores case, as behind `~*`.
    ///
    /// # Errors
    /// As for [`Regex::new`].
    pub fn case_insensitive(pattern: &str, place: &str) -> Result<Self, RegexError> {
        Self::new(pattern, Case::Ignored, place)
    }

    /// Compiles `pattern`; `place` is its place (`in FILE:LINE`) for log messages.
    ///
    /// # Errors
    /// The pattern is not a regular expression, by PCRE2's rules.
    pub fn new(pattern: &str, case: Case, place: &str) -> Result<Self, RegexError> {
        let program = Program::compile(pattern, case, Purpose::Matches)?;
        Ok(Self::of(pattern, case, place, Arc::new(program)))
    }

    /// As [`Regex::new`], with the program of the plan's patterns that are written alike.
    ///
    /// # Errors
    /// As for [`Regex::new`].
    pub fn shared(
        pattern: &str,
        case: Case,
        place: &str,
        programs: &mut Programs,
    ) -> Result<Self, RegexError> {
        let program = programs.program(pattern, case)?;
        Ok(Self::of(pattern, case, place, program))
    }

    /// Compiles a pattern only to learn what it is: nothing is to be matched with it.
    ///
    /// # Errors
    /// As for [`Regex::new`].
    pub fn check(pattern: &str, case: Case) -> Result<Self, RegexError> {
        let program = Program::compile(pattern, case, Purpose::Check)?;
        Ok(Self::of(pattern, case, "", Arc::new(program)))
    }

    fn of(pattern: &str, case: Case, place: &str, program: Arc<Program>) -> Self {
        Self {
            pattern: pattern.to_owned(),
            case,
            place: place.into(),
            names: program.plain.names(),
            program,
        }
    }

    /// The compiled codes.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// A language that contains all texts that it matches, if an automaton can be built from it.
    fn language(&self) -> Option<regex_syntax::hir::Hir> {
        automaton::language(&bytes_of(&self.pattern), self.case == Case::Ignored)
    }

    /// Named groups: number and name.
    pub fn names(&self) -> &[(usize, String)] {
        &self.names
    }

    /// The number of groups, without the whole match.
    pub fn group_count(&self) -> usize {
        self.program.plain.group_count()
    }

    /// Whether `subject` matches, for threads other than lanes: it may take a quarter of a second.
    /// Matches of a request use its exchange.
    ///
    /// # Errors
    /// The reason why there is no result.
    pub fn decide(&self, subject: &[u8]) -> Result<bool, MatchFailure> {
        let mut allowance = Allowance::OFF_LANE;
        self.program
            .off_lane(subject, &mut allowance, &mut Groups::new())
    }

    /// The error log's line about a match without a result: nginx's message, and the place.
    pub fn failed<'a>(
        &'a self,
        message: impl fmt::Display + 'a,
        code: i32,
        subject: &'a [u8],
    ) -> impl fmt::Display + 'a {
        /// The most bytes of the subject in a log line: enough to recognise it.
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

impl Programs {
    fn program(&mut self, pattern: &str, case: Case) -> Result<Arc<Program>, RegexError> {
        let key = (pattern.to_owned(), case);
        if let Some(program) = self.by_pattern.get(&key) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Program::compile(pattern, case, self.purpose)?);
        self.by_pattern.insert(key, Arc::clone(&program));
        Ok(program)
    }
}

impl Program {
    fn compile(pattern: &str, case: Case, purpose: Purpose) -> Result<Self, RegexError> {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        let bytes = bytes_of(pattern);
        let caseless = case == Case::Ignored;
        let plain = Code::compile(&bytes, caseless, Counting::Backtracks);
        let plain = plain.map_err(|error| RegexError {
            pattern: pattern.to_owned(),
            rest: turnpike_conf::text_of(bytes.get(error.offset..).unwrap_or_default()),
            reason: error.message,
        })?;
        let cost = Cost::of(&bytes, &plain);
        let counted = || Code::compile(&bytes, caseless, Counting::Steps).ok();
        let (plain, counted) = match purpose {
            Purpose::Matches => (
                plain.with_machine_code(),
                counted().map(Code::with_machine_code),
            ),
            Purpose::Check => (plain, counted()),
        };
        Ok(Self {
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            plain,
            counted,
            cost,
        })
    }

    /// Matches on a lane; the cost is subtracted from its allowance.
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
                result => return result,
            }
        }
        self.counted(subject, allowance, LANE_HEAP_KIB, groups)
    }

    /// Matches on a thread that no other request waits for.
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
            result => result,
        }
    }

    /// Matches with counted code, or in the interpreter if the compiled code's stack is too small.
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
        let mut result = counted.search(subject, &mut limits, groups);
        if let Err(failure) = result
            && failure.is_stack()
        {
            limits.interpreted = true;
            result = counted.search(subject, &mut limits, groups);
        }
        allowance.steps = limits.steps;
        result
    }
}

/// Backtracks are not limited if steps are counted.
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

    /// The range of the whole match in the subject.
    pub fn whole(&self) -> Option<(usize, usize)> {
        self.groups.first().copied().flatten()
    }

    /// Clears the last match; keeps the memory.
    pub fn clear(&mut self) {
        self.subject.clear();
        self.groups.clear();
    }

    /// The memory of the subject, for whoever limits what is kept after [`Captures::clear`].
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.subject
    }

    /// The bytes of memory that a match can use again.
    pub fn held_bytes(&self) -> usize {
        self.subject.capacity() + self.groups.capacity() * size_of::<Option<(usize, usize)>>()
    }

    /// Stores another match: its subject, and the ranges of the groups.
    pub fn set(&mut self, subject: &[u8], groups: &[Option<(usize, usize)>]) {
        self.clear();
        self.subject.extend_from_slice(subject);
        self.groups.extend_from_slice(groups);
    }
}
