//! The worst-case cost of a match, as far as the pattern and the length of the subject determine
//! it.
//!
//! PCRE2's compiled code counts each round of a repetition and each alternative, separately for
//! each starting position. Between two counts it does not branch, so its work is bounded: it passes
//! through the rest of the pattern once, or, with a repetition in it, once for each position to
//! which that may backtrack. The product of this bound, the starting positions and the allowed
//! counts is the worst case. Real costs are far smaller; a pattern whose bound is too large is
//! matched by code that counts every step instead.

use std::sync::OnceLock;

use turnpike_lane::sys::pcre::{Code, Counting};

/// The bytes that uncounted code may compare for a request before other requests get a turn: at
/// most 2 ms, since it compares one in a nanosecond or less. That is enough for about 100 usual
/// locations.
pub const LANE_WORK: u64 = 2_000_000;

/// The steps of counted code for a request before other requests get a turn: 1 ms in compiled code
/// (10 to 20 ns a step), at most 3 ms in the interpreter, which only deep recursion needs.
pub const LANE_STEPS: u64 = 50_000;

/// The steps of one match off the lanes: about a third of a second. A match that needs more is an
/// attack or an error.
pub const OFF_LANE_STEPS: u64 = 20_000_000;

/// The bytes that uncounted code may compare off the lanes, if there is no counted code: as long as
/// [`OFF_LANE_STEPS`] take.
pub(super) const OFF_LANE_WORK: u64 = 500_000_000;

/// The bytes that PCRE2 scans in the time of a step.
const BYTES_PER_STEP: u64 = 16;

/// The groups whose positions are copied in the time of a step.
const GROUPS_PER_STEP: u64 = 8;

/// The factor for the cost of a byte that may be part of a character.
const UTF_FACTOR: u64 = 4;

/// The inputs of a pattern's cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The bytes of compiled code, which bound one pass through the pattern.
    code_bytes: u64,
    /// Whether it can match only at the start.
    anchored: bool,
    /// Whether it has a repetition.
    repeats: bool,
    back_references: bool,
    utf: bool,
    groups: u64,
    /// The largest number in braces: an item with such a repetition counts as one item.
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

    /// The bytes that plain code may compare for each allowed backtrack, at least 1.
    pub(super) fn of_backtrack(&self, subject_bytes: usize) -> u64 {
        let length = subject_bytes as u64 + 1;
        let starts = if self.anchored { 1 } else { length };
        // One pass through the pattern, and one back.
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

    /// The steps that counted code is charged for each item of the pattern.
    pub(super) fn steps_per_item(&self, subject_bytes: usize) -> u64 {
        let longest = if self.back_references {
            subject_bytes as u64
        } else {
            self.largest_count.min(subject_bytes as u64)
        };
        1 + longest / BYTES_PER_STEP + self.groups / GROUPS_PER_STEP
    }

    /// The steps before the first item: the UTF-8 check, and the search for the first byte that can
    /// begin a match.
    pub(super) fn steps_before_first_item(&self, subject_bytes: usize) -> u64 {
        let walked = subject_bytes as u64 / BYTES_PER_STEP;
        1 + if self.utf {
            walked * UTF_FACTOR
        } else {
            walked
        }
    }
}

/// The bytes of the compiled code of an empty pattern.
fn header_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let empty = Code::compile(b"", false, Counting::Backtracks);
        empty.map_or(0, |code| code.size_bytes())
    })
}

/// Whether the pattern contains a repetition, or bytes that look like one.
fn repeats(pattern: &[u8]) -> bool {
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            // `\X` takes all bytes of a grapheme cluster.
            b'\\' if bytes.next() == Some(&b'X') => return true,
            b'*' | b'+' | b'{' => return true,
            _ => {}
        }
    }
    false
}

/// The largest number after a brace or a comma.
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
