//! Parts of responses (RFC 9110 section 15.3.7, RFC 9111 sections 3.3 and 3.4): the bytes of a 206,
//! the bytes that a request asks for, and whether two parts belong to the same bytes.

use std::ops::Range;

use turnpike_wire::message::Head;

/// The bytes of a representation that a stored response holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The range of bytes, not empty.
    pub bytes: Range<u64>,
    /// The size of the whole representation.
    pub total: u64,
}

/// The largest joined part: it is copied on a lane for each part that comes. Larger parts are kept
/// separately.
const JOINED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The largest accepted offset: larger ones would not fit a file.
const OFFSET_MAX: u64 = i64::MAX as u64;

impl Part {
    /// The part in a 206 with a single range; `None` if it is another response, or the size of the
    /// whole is unknown.
    pub fn of(head: &Head) -> Option<Self> {
        if head.status != 206 {
            return None;
        }
        let mut fields = head.values(b"content-range");
        let (value, None) = (fields.next()?, fields.next()) else {
            return None;
        };
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        let (range, total) = (rest.get(..slash)?, rest.get(slash + 1..)?);
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let first = number(range.get(..dash)?.trim_ascii())?;
        let last = number(range.get(dash + 1..)?.trim_ascii())?;
        let total = number(total.trim_ascii())?;
        (first <= last && last < total).then_some(Self {
            bytes: first..last + 1,
            total,
        })
    }

    /// The value of Content-Range for these bytes of it.
    pub fn content_range(&self, bytes: &Range<u64>) -> String {
        let (first, last) = (bytes.start, bytes.end.saturating_sub(1));
        format!("bytes {first}-{last}/{}", self.total)
    }

    /// Whether it is the whole representation.
    pub fn is_whole(&self) -> bool {
        self.bytes == (0..self.total)
    }

    /// The bytes that a Range field asks for, if it has one range and this part holds all of it
    /// (RFC 9111 section 3.3).
    pub fn wanted(&self, range: &[u8]) -> Option<Range<u64>> {
        let (unit, range) = range.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let range = range.trim_ascii();
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (range.get(..dash)?, range.get(dash + 1..)?);
        let wanted = match (first, last) {
            (b"", suffix) => self.total.saturating_sub(number(suffix)?)..self.total,
            (first, b"") => number(first)?..self.total,
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first {
                    return None;
                }
                first..last.saturating_add(1).min(self.total)
            }
        };
        let holds = self.bytes.start <= wanted.start && wanted.end <= self.bytes.end;
        (wanted.start < wanted.end && holds).then_some(wanted)
    }

    /// The union of both, if there is no gap between them.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        let touches = self.bytes.start <= other.bytes.end && other.bytes.start <= self.bytes.end;
        (touches && self.total == other.total).then(|| Self {
            bytes: self.bytes.start.min(other.bytes.start)..self.bytes.end.max(other.bytes.end),
            total: self.total,
        })
    }
}

/// Joins the bytes of two adjacent or overlapping parts; the first one's bytes count in the
/// overlap.
pub(crate) fn join(first: (&Part, &[u8]), second: (&Part, &[u8])) -> Option<(Part, Vec<u8>)> {
    let whole = first.0.joined(second.0)?;
    let length = usize::try_from(whole.bytes.end - whole.bytes.start).ok()?;
    if length > JOINED_BYTES_MAX {
        return None;
    }
    let mut bytes = vec![0; length];
    for (part, content) in [second, first] {
        let start = usize::try_from(part.bytes.start - whole.bytes.start).ok()?;
        bytes
            .get_mut(start..start.checked_add(content.len())?)?
            .copy_from_slice(content);
    }
    Some((whole, bytes))
}

/// The head of a joined part: the newer head with the new range (RFC 9110 section 15.3.7.3). If the
/// part is complete, its status is 200.
pub(crate) fn joined_head(newer: &Head, part: &Part) -> Head {
    let mut head = newer.compacted();
    let is_of_part = |name: &[u8]| {
        name.eq_ignore_ascii_case(b"content-range") || name.eq_ignore_ascii_case(b"content-length")
    };
    head.fields.retain(|entry| !is_of_part(entry.name));
    if part.is_whole() {
        head.status = 200;
    } else {
        head.fields
            .add(b"Content-Range", part.content_range(&part.bytes).as_bytes());
    }
    let length = part.bytes.end - part.bytes.start;
    head.fields
        .add(b"Content-Length", length.to_string().as_bytes());
    head
}

/// Whether two parts belong to the same bytes: both have the same strong validator (RFC 9111
/// section 3.4). A date does not count, since its strength is unknown here.
pub fn share_strong_validator(one: &Head, other: &Head) -> bool {
    match (strong_tag(one), strong_tag(other)) {
        (Some(own), Some(theirs)) => own == theirs,
        _ => false,
    }
}

/// The entity tag, if it is strong.
pub fn strong_tag(head: &Head) -> Option<&[u8]> {
    head.value(b"etag").filter(|tag| tag.starts_with(b"\""))
}

fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number <= OFFSET_MAX).then_some(number)
}
