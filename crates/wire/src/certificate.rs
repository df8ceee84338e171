//! As much of X.509 (RFC 5280 section 4.1) as a certificate needs that is trusted by itself: who
//! issued it, and how long it is good. What is not as the RFC says is no such certificate.

use crate::date;

/// A certificate whose issuer is its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfSigned {
    /// Unix seconds.
    pub not_before_s: u64,
    /// Unix seconds; it is good for the whole of this one.
    pub not_after_s: u64,
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0]`, constructed: the version.
const VERSION: u8 = 0xa0;

/// Reads a certificate; `None` where it is not self-signed, or not one at all.
pub fn self_signed(certificate: &[u8]) -> Option<SelfSigned> {
    let (certificate, _) = take(certificate, SEQUENCE)?;
    let (mut rest, _) = take(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = take(rest, VERSION)?.1;
    }
    let (_serial, rest) = take(rest, INTEGER)?;
    let (_algorithm, rest) = take(rest, SEQUENCE)?;
    let (issuer, rest) = take(rest, SEQUENCE)?;
    let (validity, rest) = take(rest, SEQUENCE)?;
    let (subject, _) = take(rest, SEQUENCE)?;
    let (not_before_s, rest) = time(validity)?;
    let (not_after_s, _) = time(rest)?;
    (issuer == subject).then_some(SelfSigned {
        not_before_s,
        not_after_s,
    })
}

/// What is in the element of this tag, and what follows it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&own, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    if own != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // Longer than four bytes no certificate's length is.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .fold(0_usize, |sum, digit| sum << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// A time as unix seconds, and what follows it (RFC 5280 section 4.1.2.5).
fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
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
    // Certificates from before 1970 have run out as of then.
    let seconds = u64::try_from(seconds).unwrap_or(0);
    (text == b"Z").then_some((seconds, rest))
}

/// So many digits as a number, and what follows them.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let number = digits.iter().try_fold(0, |sum, digit| {
        let is_digit = digit.is_ascii_digit();
        is_digit.then(|| sum * 10 + i64::from(digit - b'0'))
    });
    Some((number?, rest))
}

#[cfg(test)]
mod tests;
