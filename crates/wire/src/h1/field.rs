//! The parser of one header line.

use crate::Span;
use crate::message::{
    Field, Known, Strictness, byte_marks, control_marks, find_control, is_token_byte,
    is_white_space, trim,
};

#[cfg(test)]
mod tests;

/// The rules for a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineRules {
    /// nginx's rules.
    Nginx,
    /// RFC 9112 section 5, for a client's line.
    Request,
    /// RFC 9112 section 5, for an upstream server's line: white space before the colon is removed
    /// (section 5.1).
    Response,
}

impl LineRules {
    /// The rules for a request's lines.
    pub(crate) fn of_request(strictness: Strictness) -> LineRules {
        match strictness {
            Strictness::Rfc => LineRules::Request,
            Strictness::Nginx => LineRules::Nginx,
        }
    }

    /// The rules for a response's lines.
    pub(crate) fn of_response(strictness: Strictness) -> LineRules {
        match strictness {
            Strictness::Rfc => LineRules::Response,
            Strictness::Nginx => LineRules::Nginx,
        }
    }
}

/// Why a line cannot be parsed further.
pub(crate) enum Stop {
    /// The input ends before the line does.
    More,
    /// The line is refused because of the byte at this offset.
    Bad(usize),
}

/// A parsed line of a header section.
pub(crate) enum Line {
    /// A header line; its field is not `valid` if the name has bytes other than letters, digits,
    /// `-` and `_`.
    Field(Field),
    /// The empty line that ends the section.
    Empty,
}

/// The first line of a known name; `seen` holds the bits of all known names in the lines.
pub(super) fn find(fields: &[Field], seen: u64, known: Known) -> Option<&Field> {
    if seen & known.bit() == 0 {
        return None;
    }
    fields.iter().find(|field| field.known == known)
}

/// The first line with that name, in any case.
pub(super) fn find_name<'a>(fields: &'a [Field], buffer: &[u8], name: &[u8]) -> Option<&'a Field> {
    fields
        .iter()
        .find(|field| field.name.of(buffer).eq_ignore_ascii_case(name))
}

/// Whether one of the `Connection` lines names this field (RFC 9110 section 7.6.1).
pub(super) fn is_connection_option(fields: &[Field], buffer: &[u8], name: &[u8]) -> bool {
    let lines = fields
        .iter()
        .filter(|field| field.known == Known::Connection);
    lines
        .flat_map(|field| field.value.of(buffer).split(|byte| *byte == b','))
        .any(|option| trim(option).eq_ignore_ascii_case(name))
}

/// Calls `take` with the names and values of a trailer section (RFC 9110 section 6.5); ends at the
/// first line that is malformed.
pub fn trailer_fields(section: &[u8], mut take: impl FnMut(&[u8], &[u8])) {
    let mut start = 0;
    while let Ok((Line::Field(field), next)) = parse_line(section, start, LineRules::Nginx) {
        take(field.name.of(section), field.value.of(section));
        start = next;
    }
}

/// Reads a line in the form that nearly all programs write; returns its field and the offset of the
/// next line. `None`: [`parse_by_rules`] decides.
///
/// The form is a name of letters, digits and hyphens, a colon, one space, a value without control
/// bytes that neither begins nor ends with white space, and CR LF. All manners read it alike, and
/// most of the time that a head takes goes into its lines.
#[inline(always)]
fn parse_usual_line(bytes: &[u8], start: usize) -> Option<(Field, usize)> {
    let line = bytes.get(start..)?;
    let colon = find_colon(line)?;
    let (name, rest) = line.split_at_checked(colon)?;
    let value = rest.strip_prefix(b": ")?;
    let length = find_control(value)?;
    let (value, rest) = value.split_at_checked(length)?;
    let is_trimmed = !is_white_space(*value.first()?) && !is_white_space(*value.last()?);
    if !is_trimmed || !rest.starts_with(b"\r\n") {
        return None;
    }
    let known = Known::of(name);
    if known == Known::Other && name.iter().any(|byte| NAME_CLASS[usize::from(*byte)] != 0) {
        return None;
    }
    let value_start = start + colon + 2;
    let value_end = value_start + length;
    let field = Field {
        name: Span::new(start, start + colon),
        value: Span::new(value_start, value_end),
        known,
        valid: true,
        underscore: false,
    };
    Some((field, value_end + 2))
}

/// The longest names that [`parse_usual_line`] reads, in words of eight bytes.
const USUAL_NAME_WORDS_MAX: usize = 4;

/// The offset of the first colon of a line, if it is not at its start and no control byte is before
/// it.
#[inline(always)]
fn find_colon(line: &[u8]) -> Option<usize> {
    let (words, _) = line.as_chunks::<8>();
    for (number, word) in words.iter().take(USUAL_NAME_WORDS_MAX).enumerate() {
        let value = u64::from_le_bytes(*word);
        let marks = byte_marks(value, b':') | control_marks(value);
        if marks != 0 {
            let index = (marks.trailing_zeros() / 8) as usize;
            let at = number * 8 + index;
            return (word[index] == b':' && at > 0).then_some(at);
        }
    }
    None
}

/// Parses the header line that begins at `start`; returns it and the offset of the next one.
#[inline(always)]
pub(crate) fn parse_line(
    bytes: &[u8],
    start: usize,
    manner: LineRules,
) -> Result<(Line, usize), Stop> {
    match parse_usual_line(bytes, start) {
        Some((field, next)) => Ok((Line::Field(field), next)),
        None => parse_by_rules(bytes, start, manner),
    }
}

/// Parses any line.
///
/// A lone line feed ends a line too, and a line that begins with white space (obsolete folding) is
/// refused. As in nginx, only spaces are removed from a value, several carriage returns before a
/// line feed end a line, and a name without a colon is a header with an empty value. By the RFC,
/// names are tokens, tabs are white space, and values hold no control bytes.
fn parse_by_rules(bytes: &[u8], start: usize, manner: LineRules) -> Result<(Line, usize), Stop> {
    let first = *bytes.get(start).ok_or(Stop::More)?;
    if first == b'\r' || first == b'\n' {
        let line_feed = if first == b'\r' { start + 1 } else { start };
        return match bytes.get(line_feed) {
            None => Err(Stop::More),
            Some(b'\n') => Ok((Line::Empty, line_feed + 1)),
            Some(_) => Err(Stop::Bad(line_feed)),
        };
    }
    if first == b':' {
        return Err(Stop::Bad(start));
    }
    let (name_end, seen) = scan_name(bytes, start, manner)?;
    let name = Span::new(start, name_end);
    let strict = manner != LineRules::Nginx;
    if strict && let Some(at) = foreign_byte(name.of(bytes), seen) {
        return Err(Stop::Bad(start + at));
    }
    let mut colon = name_end;
    while is_white_space(bytes[colon]) {
        colon += 1;
        if colon == bytes.len() {
            return Err(Stop::More);
        }
    }
    let (value, next) = match bytes[colon] {
        b':' if strict => parse_strict_value(bytes, colon + 1)?,
        b':' => parse_value(bytes, colon + 1)?,
        _ if strict => return Err(Stop::Bad(colon)),
        _ => (Span::new(colon, colon), end_line(bytes, colon)?),
    };
    let field = Field {
        name,
        value,
        known: Known::of(name.of(bytes)),
        valid: seen & ODD == 0,
        underscore: seen & UNDERSCORE != 0,
    };
    Ok((Line::Field(field), next))
}

/// The first byte of a name that a token may not hold; `seen` holds the classes of the name's
/// bytes.
fn foreign_byte(name: &[u8], seen: u8) -> Option<usize> {
    if seen & ODD == 0 {
        return None;
    }
    name.iter().position(|byte| !is_token_byte(*byte))
}

/// Scans a name up to the byte that ends it: the colon, the line's end, or in a response white
/// space. Returns its offset and the classes of the bytes.
fn scan_name(bytes: &[u8], start: usize, manner: LineRules) -> Result<(usize, u8), Stop> {
    let mut seen = 0;
    let mut index = start;
    while let Some(&byte) = bytes.get(index) {
        let class = NAME_CLASS[usize::from(byte)];
        if class >= ENDS {
            let cut_off = manner == LineRules::Response && index > start && is_white_space(byte);
            return if class == ENDS || cut_off {
                Ok((index, seen))
            } else {
                Err(Stop::Bad(index))
            };
        }
        seen |= class;
        index += 1;
    }
    Err(Stop::More)
}

fn parse_value(bytes: &[u8], after_colon: usize) -> Result<(Span, usize), Stop> {
    let mut start = after_colon;
    while bytes.get(start) == Some(&b' ') {
        start += 1;
    }
    let rest = bytes.get(start..).unwrap_or(&[]);
    let mut end = start + memchr::memchr3(b'\r', b'\n', 0, rest).ok_or(Stop::More)?;
    let next = end_line(bytes, end)?;
    while end > start && bytes[end - 1] == b' ' {
        end -= 1;
    }
    Ok((Span::new(start, end), next))
}

/// As [`parse_value`], by RFC 9110 section 5.5.
fn parse_strict_value(bytes: &[u8], after_colon: usize) -> Result<(Span, usize), Stop> {
    let rest = bytes.get(after_colon..).unwrap_or(&[]);
    let found = find_control(rest).ok_or(Stop::More)?;
    // Of a value that holds another control byte, the line's end is waited for all the same.
    let length = match rest[found] {
        b'\r' | b'\n' => found,
        _ => memchr::memchr2(b'\r', b'\n', rest).ok_or(Stop::More)?,
    };
    let mut end = after_colon + length;
    let line_feed = end + usize::from(bytes[end] == b'\r');
    match bytes.get(line_feed) {
        None => return Err(Stop::More),
        Some(b'\n') => {}
        Some(_) => return Err(Stop::Bad(end)),
    }
    let mut start = after_colon;
    while start < end && is_white_space(bytes[start]) {
        start += 1;
    }
    while end > start && is_white_space(bytes[end - 1]) {
        end -= 1;
    }
    if found < length {
        return Err(Stop::Bad(after_colon + found));
    }
    Ok((Span::new(start, end), line_feed + 1))
}

/// Passes the line's end, which must begin at `at`; returns the offset after it.
fn end_line(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    let mut index = at;
    while bytes.get(index) == Some(&b'\r') {
        index += 1;
    }
    match bytes.get(index) {
        None => Err(Stop::More),
        Some(b'\n') => Ok(index + 1),
        Some(_) => Err(Stop::Bad(index)),
    }
}

const UNDERSCORE: u8 = 1;
const ODD: u8 = 2;
const ENDS: u8 = 4;
const REFUSED: u8 = 8;

/// 0 for letters, digits and hyphens.
const NAME_CLASS: [u8; 256] = {
    let mut table = [ODD; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        if value.is_ascii_alphanumeric() || value == b'-' {
            table[byte] = 0;
        } else if value <= b' ' || value == 0x7f {
            table[byte] = REFUSED;
        }
        byte += 1;
    }
    table[b'_' as usize] = UNDERSCORE;
    table[b':' as usize] = ENDS;
    table[b'\r' as usize] = ENDS;
    table[b'\n' as usize] = ENDS;
    table
};
