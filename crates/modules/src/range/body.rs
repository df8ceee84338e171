//! Cutting bodies of every kind.

use turnpike_http::body_filter::{BodyFilter, Filtered, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{Body, BodyFailed, FileBody, Parts, Response};

use super::parse::ByteRange;

/// Leaves of a body what is in the range.
pub(super) fn cut(response: &mut Response, range: ByteRange) {
    let (start, end) = (range.start as usize, range.end as usize);
    let body = match response.take_body() {
        body @ (Body::Empty | Body::Tunnel(_)) => body,
        Body::Text => {
            let text = response.text_mut();
            text.truncate(end);
            text.drain(..start.min(text.len()));
            Body::Text
        }
        Body::Static(bytes) => Body::Static(bytes.get(start..end).unwrap_or_default()),
        Body::Shared(bytes) => {
            response.text_mut().clear();
            let bytes = bytes.get(start..end).unwrap_or_default();
            response.text_mut().extend_from_slice(bytes);
            Body::Text
        }
        Body::File(FileBody { file, parts }) => {
            let parts = match parts {
                Parts::One { offset, .. } => Parts::One {
                    offset: offset + range.start,
                    length: range.end - range.start,
                },
                Parts::Many { parts, end } => cut_many(parts, end, range),
            };
            Body::File(FileBody { file, parts })
        }
        Body::Stream(mut body) => {
            let first = body.narrow(range.start, range.end).min(range.start);
            let cut = Cut {
                skip: range.start - first,
                left: range.end - range.start,
            };
            Body::Stream(Box::new(Filtered::new(body, cut)))
        }
    };
    response.set_body(body);
}

/// Leaves of texts and parts of a file what is in the range.
fn cut_many(parts: Vec<(Vec<u8>, u64, u64)>, end: Vec<u8>, range: ByteRange) -> Parts {
    let mut at = 0_u64;
    // What is in the range of the next so many bytes: from where, and how many.
    let mut within = |length: u64| {
        let (start, behind) = (at, at + length);
        at = behind;
        let from = range.start.clamp(start, behind) - start;
        let to = range.end.clamp(start, behind) - start;
        (from, to.saturating_sub(from))
    };
    let mut kept = Vec::with_capacity(parts.len());
    for (text, offset, length) in parts {
        let (from, left) = within(text.len() as u64);
        let text = text[from as usize..(from + left) as usize].to_vec();
        let (from, left) = within(length);
        if !text.is_empty() || left > 0 {
            kept.push((text, offset + from, left));
        }
    }
    let (from, left) = within(end.len() as u64);
    let end = end[from as usize..(from + left) as usize].to_vec();
    Parts::Many { parts: kept, end }
}

/// Makes a body of several parts of another, and returns its length in bytes. A stream, which
/// comes only once and in order, has no such parts.
pub(super) fn cut_parts(
    response: &mut Response,
    ranges: &[ByteRange],
    heads: Vec<Vec<u8>>,
    end: Vec<u8>,
) -> u64 {
    let parts = heads.iter().zip(ranges);
    let length = parts.fold(end.len() as u64, |sum, (head, range)| {
        sum + head.len() as u64 + (range.end - range.start)
    });
    let text = response.take_text();
    let bytes: &[u8] = match response.body_mut() {
        Body::File(FileBody { parts, .. }) => {
            let start = match parts {
                Parts::One { offset, .. } => *offset,
                Parts::Many { .. } => 0,
            };
            *parts = file_parts(start, ranges, heads, end);
            return length;
        }
        Body::Text => &text,
        Body::Static(bytes) => bytes,
        Body::Shared(bytes) => bytes,
        Body::Empty | Body::Stream(_) | Body::Tunnel(_) => return length,
    };
    let mut whole = Vec::with_capacity(length as usize);
    for (head, range) in heads.iter().zip(ranges) {
        whole.extend_from_slice(head);
        let slice = bytes.get(range.start as usize..range.end as usize);
        whole.extend_from_slice(slice.unwrap_or_default());
    }
    whole.extend_from_slice(&end);
    response.set_text(whole);
    response.set_body(Body::Text);
    length
}

fn file_parts(start: u64, ranges: &[ByteRange], heads: Vec<Vec<u8>>, end: Vec<u8>) -> Parts {
    let slice =
        |(head, range): (Vec<u8>, &ByteRange)| (head, start + range.start, range.end - range.start);
    Parts::Many {
        parts: heads.into_iter().zip(ranges).map(slice).collect(),
        end,
    }
}

/// Throws the beginning of a stream away and does not wait for its end.
struct Cut {
    /// Bytes before the range that are still to come.
    skip: u64,
    /// Bytes of the range that are still to come.
    left: u64,
}

impl BodyFilter for Cut {
    fn pass(
        &mut self,
        _exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        let skipped = self.skip.min(piece.rest().len() as u64);
        self.skip -= skipped;
        piece.move_to(out);
        out.drain(..skipped as usize);
        out.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= out.len() as u64;
        match self.left {
            0 => Ok(Passed::Ended),
            _ => Ok(piece.passed(out)),
        }
    }
}
