//! Heads of CGI responses (RFC 3875 section 6) from FastCGI, SCGI and uwsgi applications: header
//! lines without a status line. `Status` gives the status. If it is absent, the status is 200, or
//! 302 with `Location`, as in nginx. SCGI and uwsgi applications may also begin with the status
//! line of HTTP, which then overrides `Status`.

use super::{
    Head, HeadRules, HeadStep, Method, ResponseError, ResponseHead, Stop, begin, framing,
    status_line, take_fields,
};
use crate::message::{Known, StatusLine, Version};

#[cfg(test)]
mod tests;

/// Parses the CGI response head at the start of `buffer`, the answer to a request with `method`;
/// `scanned` and the rules are those of [`super::parse_response`].
///
/// `Connection` and `Transfer-Encoding` are ignored, since no HTTP connection carries the response.
/// A `Status` of 1xx is refused: a CGI response is final. A status line may hold 101; the
/// connection is then a tunnel.
///
/// # Errors
/// One [`ResponseError`] for each cause.
pub fn parse_cgi_response(
    buffer: &[u8],
    scanned: usize,
    rules: &HeadRules,
    line: StatusLine,
    method: Method,
    head: &mut ResponseHead,
) -> Result<HeadStep, ResponseError> {
    if head.begun && (scanned == 0 || head.resume > buffer.len()) {
        head.clear();
    }
    head.begun = true;
    head.cgi = true;
    let more = HeadStep::Incomplete {
        scanned: buffer.len(),
    };
    if !head.line_done && !take_line(buffer, rules, line, head)? {
        return Ok(more);
    }
    head.version = Version::Http11;
    if !take_fields(buffer, rules, head)? {
        return Ok(more);
    }
    head.status = match head.find_name(buffer, b"Status") {
        _ if head.status > 0 => {
            if head.is_interim() {
                return Err(ResponseError::InvalidStatus);
            } else {
                head.status
            }
        }
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

/// Reads as [`parse_cgi_response`] does, and copies the head into `head` when it is complete.
/// `parsed` keeps the data about the body and the connection, and how many of the bytes are the
/// head's.
///
/// # Errors
/// Those of [`parse_cgi_response`].
pub fn read_cgi_response(
    bytes: &[u8],
    scanned: usize,
    rules: &HeadRules,
    line: StatusLine,
    method: Method,
    parsed: &mut ResponseHead,
    head: &mut Head,
) -> Result<HeadStep, ResponseError> {
    begin(scanned, parsed, head);
    let step = parse_cgi_response(bytes, scanned, rules, line, method, parsed)?;
    if step == HeadStep::Complete {
        parsed.copy_to(head, bytes);
    }
    Ok(step)
}

/// Takes the status line if one is allowed and there is one; `false` asks for more bytes.
fn take_line(
    buffer: &[u8],
    rules: &HeadRules,
    line: StatusLine,
    head: &mut ResponseHead,
) -> Result<bool, ResponseError> {
    if line == StatusLine::Optional {
        let limit = rules.line_bytes_max.min(rules.head_bytes_max);
        match status_line(&buffer[..buffer.len().min(limit)], head) {
            Ok(next) => head.resume = next,
            Err(Stop::More) if buffer.len() >= limit => return Err(ResponseError::TooLarge),
            Err(Stop::More) => return Ok(false),
            // A first line that is not a status line is read as a header line.
            Err(Stop::Refused) => head.status = 0,
        }
    }
    head.line_done = true;
    Ok(true)
}

/// The number of digits in a status.
const STATUS_BYTES: usize = 3;

/// Three digits, from 200 on; a reason may follow them (RFC 3875 section 6.3.3).
fn status(value: &[u8]) -> Option<u16> {
    let digits = value.get(..STATUS_BYTES)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (status >= 200).then_some(status)
}
