//! Heads of CGI responses (RFC 3875 section 6), as FastCGI, SCGI and uwsgi applications send them:
//! header lines without a status line. `Status` says what that would, and is 200 where it is
//! absent, or 302 with `Location`, as in nginx.

use super::{
    Head, HeadRules, HeadStep, Method, ResponseError, ResponseHead, framing, move_in, take_fields,
};
use crate::message::{Known, Version};

#[cfg(test)]
mod tests;

/// Parses the CGI response head at the start of `buffer`, the answer to a request with `method`;
/// `scanned` and the rules are those of [`super::parse_response`].
///
/// `Connection` and `Transfer-Encoding` mean nothing here, since no HTTP connection carries the
/// response. A `Status` of the kind 1xx is refused: a CGI response is final.
///
/// # Errors
/// One [`ResponseError`] for each cause.
pub fn parse_cgi_response(
    buffer: &[u8],
    scanned: usize,
    rules: &HeadRules,
    method: Method,
    head: &mut ResponseHead,
) -> Result<HeadStep, ResponseError> {
    if head.begun && (scanned == 0 || head.resume > buffer.len()) {
        head.clear();
    }
    head.begun = true;
    head.cgi = true;
    head.version = Version::Http11;
    if !take_fields(buffer, rules, head)? {
        return Ok(HeadStep::Incomplete {
            scanned: buffer.len(),
        });
    }
    head.status = match head.find_name(buffer, b"Status") {
        Some(field) => {
            let value = field.value;
            let status = status(value.of(buffer)).ok_or(ResponseError::InvalidStatus)?;
            let line = value.of(buffer);
            let behind = line.get(STATUS_BYTES..).unwrap_or_default();
            let reason = value.end() - behind.trim_ascii_start().len();
            head.reason = crate::Span::new(reason, value.end());
            status
        }
        None if head.find(Known::Location).is_some() => 302,
        None => 200,
    };
    head.framing = framing(head, method)?;
    Ok(HeadStep::Complete)
}

/// Reads as [`parse_cgi_response`] does, and moves the head with its buffer into `head` when it is
/// whole, as [`super::read_response`] does.
///
/// # Errors
/// Those of [`parse_cgi_response`].
pub fn read_cgi_response(
    buffer: &mut Vec<u8>,
    scanned: usize,
    rules: &HeadRules,
    method: Method,
    parsed: &mut ResponseHead,
    head: &mut Head,
) -> Result<HeadStep, ResponseError> {
    move_in(buffer, scanned, parsed, head, |buffer, parsed| {
        parse_cgi_response(buffer, scanned, rules, method, parsed)
    })
}

/// Digits of a status.
const STATUS_BYTES: usize = 3;

/// Three digits, from 200 on; a reason may stand behind them (RFC 3875 section 6.3.3).
fn status(value: &[u8]) -> Option<u16> {
    let digits = value.get(..STATUS_BYTES)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (status >= 200).then_some(status)
}
