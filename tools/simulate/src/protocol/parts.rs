//! What the protocols have in common: a request that was read, the bytes of an answer, and the
//! fields of a head.

use crate::answer::{Answer, Disorder, Ending};
use crate::content::body;

/// A complete request.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    /// The number of the client's request.
    pub(crate) number: u64,
    pub(crate) path: String,
    pub(crate) is_head: bool,
    pub(crate) body: Vec<u8>,
    /// The request's length in bytes.
    pub(crate) length: usize,
    /// Whether the connection may serve another request.
    pub(crate) keeps: bool,
}

/// The bytes of an answer.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// The position behind the last byte of the head.
    pub(crate) head_bytes: usize,
    /// The position of the first byte that the protocol does not allow.
    pub(crate) broken_at: Option<usize>,
    /// Whether the origin closes the connection after it.
    pub(crate) is_last: bool,
}

/// The bytes of a field that is too big: more than the largest buffer of the configurations.
const BIG_FIELD_BYTES: usize = 5_000;

/// The bytes of a head without an end.
pub(super) const ENDLESS_HEAD_BYTES: usize = 20_000;

/// What stands behind an answer's end: no protocol takes it for the beginning of an answer.
pub(super) const SURPLUS: &[u8] = b"\0surplus";

/// The fields that an answer has in every protocol with fields, without the empty line.
pub(super) fn fields(answer: &Answer, content: u64) -> String {
    let mut fields = format!("Content-Type: text/plain\r\nX-Content: {content}\r\n");
    if let Some(fresh_s) = answer.fresh_s {
        fields.push_str(&format!("Cache-Control: max-age={fresh_s}\r\n"));
    }
    if answer.ending == Ending::Length {
        fields.push_str(&format!("Content-Length: {}\r\n", answer.length));
    }
    match answer.disorder {
        Some(Disorder::BigField) => {
            fields.push_str(&format!("X-Big: {}\r\n", "b".repeat(BIG_FIELD_BYTES)));
        }
        Some(Disorder::EndlessHead) => {
            let line = "X-Endless: and so on\r\n";
            fields.push_str(&line.repeat(ENDLESS_HEAD_BYTES / line.len()));
        }
        Some(Disorder::Wrong { .. } | Disorder::Surplus) | None => {}
    }
    fields
}

/// Whether the disorder of an answer makes its head none.
pub(super) fn breaks_head(answer: &Answer) -> bool {
    matches!(
        answer.disorder,
        Some(Disorder::BigField | Disorder::EndlessHead)
    )
}

/// The body of an answer, if it has one.
pub(super) fn content_of(answer: &Answer, content: u64, asked: &ParsedRequest) -> Vec<u8> {
    if asked.is_head {
        Vec::new()
    } else {
        body(content, answer.length)
    }
}

/// A position in a text of that length.
pub(super) fn at_percent(percent: usize, length: usize) -> usize {
    length * percent / 100
}
