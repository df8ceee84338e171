//! Reading the value of Range, by nginx's rules where the RFC leaves it open.

/// Bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// What a Range field asks of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestedRanges {
    /// The whole body: the field is not followed.
    Whole,
    /// One part; by far the most frequent, so it needs no list.
    One(ByteRange),
    Several(Vec<ByteRange>),
    /// Nothing that the body has.
    Unsatisfiable,
}

/// Largest offset that is understood; nginx's type of offsets is signed.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// Bytes that the head of a part is taken to cost, and bytes that several parts may cost more than
/// the body itself. Where no `max_ranges` is set, asking for more gets the whole body: nginx's
/// guard against answers that are larger than what they are parts of.
const PART_HEAD_BYTES: u64 = 256;
const PARTS_EXTRA_BYTES_MAX: u64 = 4096;

/// Reads the ranges behind `bytes=`, for a body of `length` bytes.
pub(super) fn parse(value: &[u8], length: u64, ranges_max: Option<u64>) -> RequestedRanges {
    let mut cursor = Cursor(value);
    let mut first = None;
    let mut others = Vec::new();
    let mut total = 0_u64;
    let mut count = 0_u64;
    loop {
        if cursor.is_element_empty() {
            if !cursor.take(b',') {
                break;
            }
            continue;
        }
        let Some(range) = cursor.range(length) else {
            return RequestedRanges::Unsatisfiable;
        };
        if range.start < range.end {
            count += 1;
            total = match total.checked_add(range.end - range.start) {
                Some(total) if total <= OFFSET_MAX => total,
                _ => return RequestedRanges::Unsatisfiable,
            };
            if ranges_max.is_some_and(|most| count > most) {
                return RequestedRanges::Whole;
            }
            match first {
                None => first = Some(range),
                Some(_) => others.push(range),
            }
        } else if range.start == 0 {
            return RequestedRanges::Whole;
        }
        if !cursor.take(b',') {
            break;
        }
    }
    let Some(first) = first else {
        return RequestedRanges::Unsatisfiable;
    };
    if others.is_empty() {
        return RequestedRanges::One(first);
    }
    let cost = total.saturating_add(count.saturating_mul(PART_HEAD_BYTES));
    let costly = ranges_max.is_none() && cost > length.saturating_add(PARTS_EXTRA_BYTES_MAX);
    if total > length || costly {
        return RequestedRanges::Whole;
    }
    others.insert(0, first);
    RequestedRanges::Several(others)
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    /// One range, up to a comma or the end. `None`: not a range.
    fn range(&mut self, length: u64) -> Option<ByteRange> {
        self.spaces();
        if self.take(b'-') {
            let suffix = self.number()?;
            self.spaces();
            let start = length.saturating_sub(suffix);
            return self.is_at_end().then_some(ByteRange { start, end: length });
        }
        let start = self.number()?;
        self.spaces();
        if !self.take(b'-') {
            return None;
        }
        self.spaces();
        if self.is_at_end() {
            return Some(ByteRange { start, end: length });
        }
        let last = self.number()?;
        self.spaces();
        let end = last.saturating_add(1).min(length);
        self.is_at_end().then_some(ByteRange { start, end })
    }

    /// Whether a comma or the end comes next: an element of the list that says nothing, and is
    /// passed over (RFC 9110 section 5.6.1.2).
    fn is_element_empty(&mut self) -> bool {
        self.spaces();
        self.is_at_end()
    }

    /// A number too large for an offset lies behind every body, as the largest offset does (RFC
    /// 9110 section 14.1.2).
    fn number(&mut self) -> Option<u64> {
        let mut number = None;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.0 {
            let digit = u64::from(digit - b'0');
            let larger = number.unwrap_or(0_u64).saturating_mul(10);
            number = Some(larger.saturating_add(digit).min(OFFSET_MAX));
            self.0 = rest;
        }
        number
    }

    fn spaces(&mut self) {
        while self.take(b' ') {}
    }

    fn is_at_end(&self) -> bool {
        matches!(self.0.first(), None | Some(b','))
    }

    fn take(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }
}
