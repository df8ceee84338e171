//! The grammar of values: sizes, offsets, times, numbers and flags, with nginx's exact limits.
//!
//! Every function takes a whole word and returns `None` for a value that nginx calls invalid. The
//! owner of a directive checks its own range.

const KILOBYTE: i64 = 1024;
const MEGABYTE: i64 = 1024 * KILOBYTE;
const GIGABYTE: i64 = 1024 * MEGABYTE;

/// `on` or `off`, in any case.
pub fn flag(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("on") {
        return Some(true);
    }
    text.eq_ignore_ascii_case("off").then_some(false)
}

/// Digits only.
pub fn number(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0, push_digit)
}

/// Bytes, with `k` or `m` after the digits, in any case. There is no `g` here, as in nginx.
pub fn size(text: &str) -> Option<u64> {
    scaled(text, &[(b'k', KILOBYTE), (b'm', MEGABYTE)])
}

/// Bytes of a file, with `k`, `m` or `g` after the digits, in any case.
pub fn offset(text: &str) -> Option<u64> {
    scaled(
        text,
        &[(b'k', KILOBYTE), (b'm', MEGABYTE), (b'g', GIGABYTE)],
    )
}

/// A time in milliseconds: `w d h m s ms`, or a bare number of seconds; several parts may follow
/// each other from the largest to the smallest, with spaces between them.
pub fn milliseconds(text: &str) -> Option<u64> {
    time(text, Resolution::Milliseconds)
}

/// A time in seconds: `y M w d h m s`, or a bare number of seconds; see [`milliseconds`].
pub fn seconds(text: &str) -> Option<u64> {
    time(text, Resolution::Seconds)
}

/// The number and the size of buffers, neither of which may be 0.
pub fn buffers(count: &str, size_text: &str) -> Option<(u64, u64)> {
    let count = number(count)? as u64;
    let size_bytes = size(size_text)?;
    (count > 0 && size_bytes > 0).then_some((count, size_bytes))
}

fn push_digit(value: i64, byte: u8) -> Option<i64> {
    let digit = i64::from((byte as char).to_digit(10)?);
    value.checked_mul(10)?.checked_add(digit)
}

fn scaled(text: &str, units: &[(u8, i64)]) -> Option<u64> {
    let last = text.bytes().last()?.to_ascii_lowercase();
    let unit = units.iter().find(|(letter, _)| *letter == last);
    let (digits, scale) = match unit {
        Some((_, scale)) => (&text[..text.len() - 1], *scale),
        None => (text, 1),
    };
    number(digits)?.checked_mul(scale).map(|bytes| bytes as u64)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Resolution {
    Seconds,
    Milliseconds,
}

/// The units from the largest to the smallest, which is their order in a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    None,
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    /// A bare number with text after it: no part with a unit may follow.
    Bare,
}

fn time(text: &str, resolution: Resolution) -> Option<u64> {
    let bytes = text.as_bytes();
    let mut last = match resolution {
        Resolution::Seconds => Unit::None,
        // A time in milliseconds has no years and months.
        Resolution::Milliseconds => Unit::Month,
    };
    let (mut total, mut value) = (0_i64, 0_i64);
    let mut has_digits = false;
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        if byte.is_ascii_digit() {
            value = push_digit(value, byte)?;
            has_digits = true;
            index += 1;
            continue;
        }
        let (unit, length) = unit(&bytes[index..])?;
        let limit = if unit == Unit::Bare {
            Unit::Second
        } else {
            unit
        };
        if last >= limit || (unit == Unit::Millisecond && resolution == Resolution::Seconds) {
            return None;
        }
        last = unit;
        index += length;
        total = total.checked_add(value.checked_mul(scale(unit, resolution))?)?;
        value = 0;
        index += bytes[index..]
            .iter()
            .take_while(|byte| **byte == b' ')
            .count();
    }
    let rest = value.checked_mul(scale(Unit::Bare, resolution))?;
    let sum = total.checked_add(rest)?;
    has_digits.then_some(sum as u64)
}

/// The unit at the start of `bytes` and its length.
fn unit(bytes: &[u8]) -> Option<(Unit, usize)> {
    Some(match bytes {
        [b'm', b's', ..] => (Unit::Millisecond, 2),
        [b'y', ..] => (Unit::Year, 1),
        [b'M', ..] => (Unit::Month, 1),
        [b'w', ..] => (Unit::Week, 1),
        [b'd', ..] => (Unit::Day, 1),
        [b'h', ..] => (Unit::Hour, 1),
        [b'm', ..] => (Unit::Minute, 1),
        [b's', ..] => (Unit::Second, 1),
        [b' ', ..] => (Unit::Bare, 1),
        _ => return None,
    })
}

fn scale(unit: Unit, resolution: Resolution) -> i64 {
    const DAY: i64 = 24 * 60 * 60;
    let seconds = match unit {
        Unit::Year => 365 * DAY,
        Unit::Month => 30 * DAY,
        Unit::Week => 7 * DAY,
        Unit::Day => DAY,
        Unit::Hour => 60 * 60,
        Unit::Minute => 60,
        Unit::None | Unit::Second | Unit::Bare => 1,
        Unit::Millisecond => return 1,
    };
    match resolution {
        Resolution::Seconds => seconds,
        Resolution::Milliseconds => seconds * 1000,
    }
}
