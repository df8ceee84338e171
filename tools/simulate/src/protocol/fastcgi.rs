//! FastCGI as applications speak it (FastCGI specification 1.0).

use super::cgi::{self, Params};
use super::parts::{ParsedRequest, Written, at_percent};
use crate::answer::{Answer, Disorder};

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Bytes of a record's header.
const HEADER_BYTES: usize = 8;

/// What an application says to its error stream.
const MESSAGE: &[u8] = b"simulated notice\n";

/// Takes the next record off the input; `None` if it is incomplete.
fn record<'a>(input: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, String> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let [1, kind, 0, 1, high, low, padding, _] = *header else {
        return Err(format!("a record begins with {header:?}"));
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let Some(content) = rest.get(..length) else {
        return Ok(None);
    };
    let Some(rest) = rest.get(length + usize::from(padding)..) else {
        return Ok(None);
    };
    *input = rest;
    Ok(Some((kind, content)))
}

pub(super) fn read(input: &[u8]) -> Result<Option<ParsedRequest>, String> {
    let mut rest = input;
    let Some((kind, begin)) = record(&mut rest)? else {
        return Ok(None);
    };
    let (BEGIN_REQUEST, &[0, 1, flags @ (0 | 1), _, _, _, _, _]) = (kind, begin) else {
        return Err(format!("a request begins with {kind}: {begin:?}"));
    };
    let mut streams = [Vec::new(), Vec::new()];
    for (stream, expected) in streams.iter_mut().zip([PARAMS, STDIN]) {
        loop {
            match record(&mut rest)? {
                None => return Ok(None),
                Some((kind, [])) if kind == expected => break,
                Some((kind, content)) if kind == expected => stream.extend_from_slice(content),
                Some((kind, _)) => return Err(format!("a record of {kind}, not {expected}")),
            }
        }
    }
    let [params, body] = streams;
    let length = input.len() - rest.len();
    let asked = cgi::asked(&pairs(&params)?, body, length)?;
    Ok(Some(ParsedRequest {
        keeps: flags == 1,
        ..asked
    }))
}

/// Reads names and values, each behind its length of one or four bytes.
fn pairs(mut bytes: &[u8]) -> Result<Params, String> {
    let length = |bytes: &mut &[u8]| -> Option<usize> {
        let (first, rest) = bytes.split_first()?;
        if *first < 0x80 {
            *bytes = rest;
            return Some(usize::from(*first));
        }
        let (four, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        Some((u32::from_be_bytes(*four) & 0x7fff_ffff) as usize)
    };
    let next = |bytes: &mut &[u8]| -> Option<(String, String)> {
        let (name, value) = (length(bytes)?, length(bytes)?);
        let (name, rest) = bytes.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        *bytes = rest;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(name), text(value)))
    };
    let mut params = Params::new();
    while !bytes.is_empty() {
        params.push(next(&mut bytes).ok_or("the parameters are cut")?);
    }
    Ok(params)
}

/// Records that are written one after another.
struct Records {
    bytes: Vec<u8>,
    count: usize,
    /// The record with this number is wrong, in this way.
    wrong: Option<(usize, usize)>,
    broken_at: Option<usize>,
}

impl Records {
    fn push(&mut self, kind: u8, content: &[u8]) {
        let padding = self.count % 4 * 3;
        let [high, low] = (content.len() as u16).to_be_bytes();
        let mut header = [1, kind, 0, 1, high, low, padding as u8, 0];
        if let Some((_, way)) = self.wrong.filter(|(number, _)| *number == self.count) {
            self.broken_at = self.broken_at.or(Some(self.bytes.len()));
            match way % 3 {
                0 => header[0] = 2,
                1 => header[1] = STDIN,
                _ => header[3] = 2,
            }
        }
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len() + padding, 0);
        self.count += 1;
    }
}

pub(super) fn write(answer: &Answer, content: u64, asked: &ParsedRequest) -> Written {
    // Of the wrong parts, one is of the head, and the others are of the records around it.
    let wrong = match answer.disorder {
        Some(Disorder::Wrong { kind, percent }) => Some((kind, percent)),
        _ => None,
    };
    let breaks_field = wrong.is_some_and(|(kind, _)| kind % 4 == 3);
    let text = cgi::text(answer, content, asked, breaks_field);
    let pieces = text.bytes.len().div_ceil(answer.record_bytes);
    let wrong = wrong.filter(|_| !breaks_field);
    let mut records = Records {
        bytes: Vec::new(),
        count: 0,
        wrong: wrong.map(|(kind, percent)| (at_percent(percent, pieces), kind)),
        broken_at: text.broken_at.and(Some(0)),
    };
    let mut head_bytes = 0;
    let mut at = 0;
    for piece in text.bytes.chunks(answer.record_bytes) {
        if answer.has_messages && records.count % 3 == 1 {
            records.push(STDERR, MESSAGE);
        }
        let start = records.bytes.len() + HEADER_BYTES;
        records.push(STDOUT, piece);
        if (at..at + piece.len()).contains(&(text.head_bytes - 1)) {
            head_bytes = start + text.head_bytes - at;
        }
        at += piece.len();
    }
    if answer.ends_stream {
        records.push(STDOUT, b"");
    }
    if answer.disorder != Some(Disorder::EndlessHead) {
        records.push(END_REQUEST, &[0; 8]);
    }
    Written {
        bytes: records.bytes,
        head_bytes,
        broken_at: records.broken_at,
        is_last: answer.says_close || !asked.keeps,
    }
}
