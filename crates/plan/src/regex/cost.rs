//! What a match may cost at worst, as far as it can be told from the pattern and the length of the
//! subject.
//!
//! PCRE2's compiled code counts each round of a repetition and each choice, from every starting
//! position anew. Between two counts it does not branch, so that what it does there is bounded: it
//! goes through the rest of the pattern once, or, with a repetition in it, once for each place to
//! which that may be taken back. Times the starting positions, times the counts allowed, that is
//! all it can do. The bound is far above what happens; a pattern for which it is too much is
//! matched by code that counts everything instead.

use std::sync::OnceLock;

use turnpike_lane::sys::pcre::{Code, Counting};

/// Bytes that code without counts may compare for a request before others have their turn: at most
/// 2 ms, since it compares one in a nanosecond or less. Some 100 ordinary locations fit.
pub const LANE_WORK: u64 = 2_000_000;

/// Steps that counting code may take for a request before others have their turn: 1 ms in compiled
/// code (10 to 20 ns a step), at most 3 ms in the interpreter, which only deep recursion needs.
pub const LANE_STEPS: u64 = 50_000;

/// Steps of one match off the lanes: about a third of a second. More is no use of a pattern, but
/// an attack or a mistake.
pub const OFF_LANE_STEPS: u64 = 20_000_000;

/// Bytes that code without counts may compare off the lanes, where there is no counting code: as
/// long as [`OFF_LANE_STEPS`] take.
pub(super) const OFF_LANE_WORK: u64 = 500_000_000;

/// Bytes that PCRE2 walks through in the time of a step.
const BYTES_PER_STEP: u64 = 16;

/// Groups whose positions are copied in the time of a step.
const GROUPS_PER_STEP: u64 = 8;

/// Times that a byte costs more where it may be part of a character.
const UTF_FACTOR: u64 = 4;

/// What the cost of a pattern depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes of compiled code, all that one way through the pattern can meet.
    code_bytes: u64,
    /// Whether it can match at the start only.
    anchored: bool,
    /// Whether it repeats anything more than once.
    repeats: bool,
    back_references: bool,
    utf: bool,
    groups: u64,
    /// The largest number in braces: an item that is repeated so many times is one item.
    largest_count: u64,
}

impl Cost {
    pub(super) fn of(pattern: &[u8], code: &Code) -> Cost {
        let code_bytes = code.size_bytes().saturating_sub(header_bytes());
        Cost {
            code_bytes: (code_bytes as u64).max(1),
            anchored: code.is_anchored(),
            repeats: repeats(pattern),
            back_references: code.has_back_references(),
            utf: code.is_utf(),
            groups: code.group_count() as u64,
            largest_count: largest_count(pattern),
        }
    }

    /// Bytes that plain code may compare for each backtrack it is allowed, at least 1.
    pub(super) fn of_backtrack(&self, subject_bytes: usize) -> u64 {
        let length = subject_bytes as u64 + 1;
        let starts = if self.anchored { 1 } else { length };
        // Once through the pattern, and once back.
        let mut work = self.code_bytes.saturating_mul(2).saturating_mul(starts);
        if self.repeats {
            work = work.saturating_mul(length);
        }
        if self.back_references {
            work = work.saturating_mul(length);
        }
        if self.utf {
            work = work.saturating_mul(UTF_FACTOR);
        }
        work
    }

    /// Steps that counting code is charged for each item of the pattern.
    pub(super) fn steps_per_item(&self, subject_bytes: usize) -> u64 {
        let longest = match self.back_references {
            true => subject_bytes as u64,
            false => self.largest_count.min(subject_bytes as u64),
        };
        1 + longest / BYTES_PER_STEP + self.groups / GROUPS_PER_STEP
    }

    /// Steps for what happens before the first item: UTF-8 is checked, and the first byte that can
    /// begin a match is looked for.
    pub(super) fn steps_before_first_item(&self, subject_bytes: usize) -> u64 {
        let walked = subject_bytes as u64 / BYTES_PER_STEP;
        1 + if self.utf {
            walked * UTF_FACTOR
        } else {
            walked
        }
    }
}

/// Bytes of the compiled code of a pattern that says nothing.
fn header_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let empty = Code::compile(b"", false, Counting::Backtracks);
        empty.map_or(0, |code| code.size_bytes())
    })
}

/// Whether a quantifier that repeats stands in the pattern, or what looks like one.
fn repeats(pattern: &[u8]) -> bool {
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            // `\X` takes as many bytes as belong together.
            b'\\' if bytes.next() == Some(&b'X') => return true,
            b'*' | b'+' | b'{' => return true,
            _ => {}
        }
    }
    false
}

/// The largest number that follows a brace or a comma.
fn largest_count(pattern: &[u8]) -> u64 {
    let mut largest = 0;
    for (at, _) in pattern
        .iter()
        .enumerate()
        .filter(|(_, byte)| matches!(byte, b'{' | b','))
    {
        let rest = pattern.get(at + 1..).unwrap_or_default().trim_ascii_start();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_u64, |number, digit| {
            number
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        });
        largest = largest.max(number);
    }
    largest
}
