//! Times in certificates (RFC 5280 section 4.1.2.5).

use crate::date;
use crate::der::{GENERALIZED_TIME, UTC_TIME, take};

/// A time in Unix seconds, and the bytes after it.
pub(crate) fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (text, year, rest) = match take(bytes, UTC_TIME) {
        Some((text, rest)) => {
            let (year, digits) = number(text, 2)?;
            let century = if year < 50 { 2000 } else { 1900 };
            (digits, century + year, rest)
        }
        None => {
            let (text, rest) = take(bytes, GENERALIZED_TIME)?;
            let (year, digits) = number(text, 4)?;
            (digits, year, rest)
        }
    };
    let (month, text) = number(text, 2)?;
    let (day, text) = number(text, 2)?;
    let (hour, text) = number(text, 2)?;
    let (minute, text) = number(text, 2)?;
    let (second, text) = number(text, 2)?;
    let seconds = date::unix_seconds([year, month, day], [hour, minute, second])?;
    // Times before 1970 count as the start of 1970: such a certificate has expired.
    let seconds = u64::try_from(seconds).unwrap_or(0);
    (text == b"Z").then_some((seconds, rest))
}

/// A number of exactly `digits` digits, and the bytes after it.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let number = digits.iter().try_fold(0, |sum, digit| {
        let is_digit = digit.is_ascii_digit();
        is_digit.then(|| sum * 10 + i64::from(digit - b'0'))
    });
    Some((number?, rest))
}
