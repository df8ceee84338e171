//! SCGI as applications speak it: parameters in a netstring, then the body.

use super::cgi::{self, Params};
use super::parts::{ParsedRequest, Written};
use crate::answer::{Answer, Disorder};

/// More digits than the length of any request has.
const DIGITS_MAX: usize = 8;

pub(super) fn read(input: &[u8]) -> Result<Option<ParsedRequest>, String> {
    let Some(colon) = input.iter().position(|byte| *byte == b':') else {
        return if input.len() <= DIGITS_MAX && input.iter().all(u8::is_ascii_digit) {
            Ok(None)
        } else {
            Err("a request does not begin with a length".to_owned())
        };
    };
    let length = std::str::from_utf8(&input[..colon]).ok();
    let length: Option<usize> = length.and_then(|text| text.parse().ok());
    let end = colon + 1 + length.ok_or("a length is no number")?;
    match input.get(end) {
        None => return Ok(None),
        Some(b',') => {}
        Some(_) => return Err("no comma stands behind the parameters".to_owned()),
    }
    let params = pairs(&input[colon + 1..end])?;
    match params.first() {
        Some((name, _)) if name == "CONTENT_LENGTH" => {}
        first => return Err(format!("the first parameter is {first:?}")),
    }
    cgi::with_body(&params, input, end + 1)
}

/// Reads names and values, each before a zero byte.
fn pairs(bytes: &[u8]) -> Result<Params, String> {
    let text = bytes.strip_suffix(b"\0").ok_or("the parameters are cut")?;
    let mut words = text.split(|byte| *byte == 0);
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let mut params = Params::new();
    while let Some(name) = words.next() {
        let value = words.next().ok_or("a parameter has no value")?;
        params.push((text(name), text(value)));
    }
    Ok(params)
}

pub(super) fn write(answer: &Answer, content: u64, asked: &ParsedRequest) -> Written {
    let breaks_field = matches!(answer.disorder, Some(Disorder::Wrong { .. }));
    let text = cgi::text(answer, content, asked, breaks_field);
    Written {
        bytes: text.bytes,
        head_bytes: text.head_bytes,
        broken_at: text.broken_at,
        is_last: true,
    }
}
