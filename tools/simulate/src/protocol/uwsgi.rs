//! uwsgi as applications speak it: a packet of parameters, then the body.

use super::cgi::{self, Params};
use super::parts::ParsedRequest;

/// Bytes of a packet's head.
const HEAD_BYTES: usize = 4;

pub(super) fn read(input: &[u8]) -> Result<Option<ParsedRequest>, String> {
    let Some((head, rest)) = input.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let [0, low, high, 0] = *head else {
        return Err(format!("a packet begins with {head:?}"));
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let Some(params) = rest.get(..length) else {
        return Ok(None);
    };
    cgi::with_body(&pairs(params)?, input, HEAD_BYTES + length)
}

/// Reads names and values, each behind its length of two bytes.
fn pairs(mut bytes: &[u8]) -> Result<Params, String> {
    let word = |bytes: &mut &[u8]| -> Option<String> {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (word, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        *bytes = rest;
        Some(String::from_utf8_lossy(word).into_owned())
    };
    let mut params = Params::new();
    while !bytes.is_empty() {
        let pair = word(&mut bytes).zip(word(&mut bytes));
        params.push(pair.ok_or("the parameters are cut")?);
    }
    Ok(params)
}
