//! What this family does with a request.

use turnpike_http::exchange::Exchange;
use turnpike_http::lane::LaneShared;
use turnpike_http::phase::Filter;
use turnpike_http::response::{Body, Parts, Response};
use turnpike_http::variables::append_number;
use turnpike_wire::date;
use turnpike_wire::message::{Known, Method, Version, holds_control};

use super::body;
use super::parse::{ByteRange, RequestedRanges, parse};

/// Cuts out of a body what the request asks for.
pub(super) struct RangeFilter {
    /// Ranges of one request at most; `None`: as many as are asked for.
    pub(super) ranges_max: Option<u64>,
}

impl Filter for RangeFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &exchange.response;
        let length = response.content_length()?;
        let ranges_max = self.ranges_max;
        let offered = response.status() == 200 && response.allows_ranges();
        if !offered || ranges_max == Some(0) || exchange.request().head().version == Version::Http09
        {
            return None;
        }
        let wish = match wanted(exchange) {
            None => RequestedRanges::Whole,
            Some(value) => parse(value, length, ranges_max),
        };
        match wish {
            RequestedRanges::Several(ranges) if has_parts(exchange.response.body()) => {
                let boundary = boundary(exchange.lane.random());
                several(&mut exchange.response, &ranges, length, &boundary);
            }
            RequestedRanges::Whole | RequestedRanges::Several(_) => {
                exchange
                    .response
                    .fields_mut()
                    .add(b"Accept-Ranges", b"bytes");
            }
            RequestedRanges::One(range) => {
                one(&mut exchange.response, &exchange.lane, range, length)
            }
            RequestedRanges::Unsatisfiable => {
                let mut value = exchange.lane.take_scratch();
                value.extend_from_slice(b"bytes */");
                append_number(&mut value, length);
                exchange.response.fields_mut().set(b"Content-Range", &value);
                exchange.lane.keep_scratch(value);
                return Some(416);
            }
        }
        None
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}

/// Whether several parts of a body can be sent: not of one that comes only once and in order, nor
/// of one that is put together of parts already.
fn has_parts(body: &Body) -> bool {
    match body {
        Body::Stream(_) => false,
        Body::File(file) => matches!(file.parts, Parts::One { .. }),
        _ => true,
    }
}

/// The ranges that are asked for, where the body is still the one they were asked of.
fn wanted(exchange: &Exchange) -> Option<&[u8]> {
    const UNIT: &[u8] = b"bytes=";
    // Ranges are defined for GET alone (RFC 9110 section 14.2).
    if exchange.method() != Method::Get {
        return None;
    }
    let value = exchange.known_field(Known::Range)?;
    let (unit, ranges) = value.split_at_checked(UNIT.len())?;
    if !unit.eq_ignore_ascii_case(UNIT) || ranges.is_empty() {
        return None;
    }
    let Some(condition) = exchange.known_field(Known::IfRange) else {
        return Some(ranges);
    };
    let response = &exchange.response;
    let unchanged = if condition.len() >= 2 && condition.ends_with(b"\"") {
        // A weak tag does not say that bytes are the same (RFC 9110 section 13.1.5).
        condition == response.etag() && !condition.starts_with(b"W/")
    } else {
        response.last_modified().is_some() && date::parse(condition) == response.last_modified()
    };
    unchanged.then_some(ranges)
}

fn one(response: &mut Response, lane: &LaneShared, range: ByteRange, length: u64) {
    let mut value = lane.take_scratch();
    value.extend_from_slice(b"bytes ");
    append_range(&mut value, range, length);
    response.replace_status(206);
    response.set_content_length(Some(range.end - range.start));
    response.fields_mut().set(b"Content-Range", &value);
    lane.keep_scratch(value);
    body::cut(response, range);
}

/// A multipart/byteranges body: each part with its own head (RFC 9110 section 14.6).
fn several(response: &mut Response, ranges: &[ByteRange], length: u64, boundary: &[u8]) {
    let heads = ranges
        .iter()
        .map(|range| part_head(response, *range, length, boundary))
        .collect();
    let end = [b"\r\n--", boundary, b"--\r\n"].concat();
    response.replace_status(206);
    response.fields_mut().remove(b"Content-Range");
    let kind = response.content_type_mut();
    kind.clear();
    kind.extend_from_slice(b"multipart/byteranges; boundary=");
    kind.extend_from_slice(boundary);
    let length = body::cut_parts(response, ranges, heads, end);
    response.set_content_length(Some(length));
}

fn part_head(response: &Response, range: ByteRange, length: u64, boundary: &[u8]) -> Vec<u8> {
    let mut head = [b"\r\n--", boundary, b"\r\n"].concat();
    if !response.content_type().is_empty() && !holds_control(response.content_type()) {
        head.extend_from_slice(b"Content-Type: ");
        head.extend_from_slice(response.content_type());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Content-Range: bytes ");
    append_range(&mut head, range, length);
    head.extend_from_slice(b"\r\n\r\n");
    head
}

fn append_range(out: &mut Vec<u8>, range: ByteRange, length: u64) {
    append_number(out, range.start);
    out.push(b'-');
    append_number(out, range.end - 1);
    out.push(b'/');
    append_number(out, length);
}

/// Twenty digits, as nginx has them.
fn boundary(random: u64) -> Vec<u8> {
    format!("{random:020}").into_bytes()
}
