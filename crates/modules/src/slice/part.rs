//! What a response says of the part that it brings (RFC 9110 section 14.4).

use turnpike_http::response::Response;
use turnpike_wire::message::decimal;

/// A part of the whole, and what shows whether others are of the same whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartOf {
    /// The first byte.
    pub(super) start: u64,
    /// Where it ends: the first byte behind it.
    pub(super) end: u64,
    /// The length of the whole in bytes.
    pub(super) whole_bytes: u64,
    etag: Vec<u8>,
    last_modified: Option<i64>,
}

impl PartOf {
    /// Reads the head of a response.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of(response: &Response) -> Result<Self, String> {
        if response.status() != 206 {
            let status = response.status();
            return Err(format!("unexpected status code {status} in slice response"));
        }
        let text = response.fields().value(b"Content-Range");
        let range = text.and_then(content_range);
        let Some((start, end, whole_bytes)) = range else {
            return Err("invalid range in slice response".to_owned());
        };
        let Some(whole_bytes) = whole_bytes else {
            return Err("no complete length in slice response".to_owned());
        };
        Ok(Self {
            start,
            end,
            whole_bytes,
            etag: response.etag().to_vec(),
            last_modified: response.last_modified(),
        })
    }

    /// Whether it is the one that was asked for.
    ///
    /// # Errors
    /// What it is instead.
    pub(super) fn expect(&self, start: u64, size_bytes: u64) -> Result<(), String> {
        let end = start.saturating_add(size_bytes).min(self.whole_bytes);
        if self.start == start && self.end == end && start < end {
            return Ok(());
        }
        let (start, end) = (self.start, self.end);
        Err(format!("unexpected range in slice response: {start}-{end}"))
    }

    /// Whether another part is of the same whole.
    ///
    /// # Errors
    /// What shows that it is not.
    pub(super) fn expect_same_whole(&self, other: &Self) -> Result<(), String> {
        let differs = |what: &str| Err(format!("{what} mismatch in slice response"));
        if self.etag != other.etag {
            return differs("etag");
        }
        if self.etag.is_empty() && self.last_modified != other.last_modified {
            return differs("last-modified");
        }
        if self.whole_bytes != other.whole_bytes {
            return differs("length");
        }
        Ok(())
    }
}

/// The first byte, the first byte behind the part, and the length of the whole, where it is known.
pub(super) fn content_range(text: &[u8]) -> Option<(u64, u64, Option<u64>)> {
    let (unit, range) = text.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes ") {
        return None;
    }
    let range = range.trim_ascii();
    let slash = memchr::memchr(b'/', range)?;
    let (bytes, whole) = (range[..slash].trim_ascii(), range[slash + 1..].trim_ascii());
    let dash = memchr::memchr(b'-', bytes)?;
    let start = decimal(bytes[..dash].trim_ascii())?;
    let last = decimal(bytes[dash + 1..].trim_ascii())?;
    if last < start {
        return None;
    }
    let whole = match whole {
        b"*" => None,
        digits => Some(decimal(digits).filter(|whole| *whole > last)?),
    };
    Some((start, last + 1, whole))
}

/// The first byte of the part with which a client's `Range` begins, parts being of this size. Where
/// it cannot be known yet, or the part would end behind the last offset that there can be, that of
/// the first part; as in nginx.
pub(super) fn first_byte(range: Option<&[u8]>, size_bytes: u64) -> u64 {
    let start = range.and_then(|range| {
        let (unit, ranges) = range.split_at_checked(6)?;
        let is_bytes = unit.eq_ignore_ascii_case(b"bytes=") && !ranges.contains(&b',');
        let dash = memchr::memchr(b'-', ranges).filter(|_| is_bytes)?;
        decimal(ranges[..dash].trim_ascii())
    });
    let has_end = |start: &u64| {
        let end = start.checked_add(size_bytes);
        end.is_some_and(|end| i64::try_from(end).is_ok())
    };
    let start = start.filter(has_end).unwrap_or(0);
    start - start % size_bytes.max(1)
}
