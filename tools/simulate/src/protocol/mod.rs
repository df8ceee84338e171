//! The protocols that origins speak: requests are read and answers written by code of their own,
//! which shares nothing with the server's.
//!
//! A reader accepts only what a correct server in front of an origin writes, and reports the error
//! in anything else.

mod cgi;
mod fastcgi;
mod http1;

use crate::content::body;
use crate::origin::{Answer, Ending};

/// A protocol between the lane and its origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    FastCgi,
}

/// The protocols beside HTTP/1; a run has one of them.
pub(crate) const OTHERS: &[Protocol] = &[Protocol::FastCgi];

/// The number of origins of each protocol.
pub(crate) const ORIGINS_EACH: usize = 2;

/// The number of origins of all protocols.
pub(crate) const ORIGINS: usize = (1 + OTHERS.len()) * ORIGINS_EACH;

/// The protocol of the origin with that number.
pub(crate) fn protocol_of(origin: usize) -> Protocol {
    let index = (origin / ORIGINS_EACH).checked_sub(1);
    let other = index.and_then(|index| OTHERS.get(index));
    other.copied().unwrap_or(Protocol::Http1)
}

/// A complete request.
#[derive(Debug)]
pub(crate) struct Asked {
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

/// The ways in which an origin breaks its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disorder {
    /// A field that no buffer of the configurations holds.
    BigField,
    /// A head without an end.
    EndlessHead,
    /// A part that the protocol does not have; its kind, and its place in percent of the answer.
    Wrong { kind: usize, percent: usize },
    /// Bytes behind the answer's end.
    Surplus,
}

/// The bytes of a field that is too big: more than the largest buffer of the configurations.
const BIG_FIELD_BYTES: usize = 5_000;

/// The bytes of a head without an end.
const ENDLESS_HEAD_BYTES: usize = 20_000;

/// What stands behind an answer's end: no protocol takes it for the beginning of an answer.
const SURPLUS: &[u8] = b"\0surplus";

impl Protocol {
    /// The prefix of its directives, which names its location and its group of servers too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "proxy",
            Protocol::FastCgi => "fastcgi",
        }
    }

    /// The number of its first origin.
    pub(crate) fn first_origin(self) -> usize {
        let index = OTHERS.iter().position(|other| *other == self);
        index.map_or(0, |index| 1 + index) * ORIGINS_EACH
    }

    /// Whether a request is made of parameters.
    pub(crate) fn has_params(self) -> bool {
        match self {
            Protocol::Http1 => false,
            Protocol::FastCgi => true,
        }
    }

    /// Reads a request; `None` if it is incomplete.
    ///
    /// # Errors
    /// The fault of the request.
    pub(crate) fn read(self, input: &[u8]) -> Result<Option<Asked>, String> {
        match self {
            Protocol::Http1 => http1::read(input),
            Protocol::FastCgi => fastcgi::read(input),
        }
    }

    /// Writes an answer whose body has this number.
    pub(crate) fn write(self, answer: &Answer, content: u64, asked: &Asked) -> Written {
        let mut written = match self {
            Protocol::Http1 => http1::write(answer, content, asked),
            Protocol::FastCgi => fastcgi::write(answer, content, asked),
        };
        if answer.disorder == Some(Disorder::Surplus) && !written.is_last {
            written.bytes.extend_from_slice(SURPLUS);
        }
        written
    }
}

/// The fields that an answer has in every protocol with fields, without the empty line.
fn fields(answer: &Answer, content: u64) -> String {
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
fn breaks_head(answer: &Answer) -> bool {
    matches!(
        answer.disorder,
        Some(Disorder::BigField | Disorder::EndlessHead)
    )
}

/// The body of an answer, if it has one.
fn content_of(answer: &Answer, content: u64, asked: &Asked) -> Vec<u8> {
    match asked.is_head {
        true => Vec::new(),
        false => body(content, answer.length),
    }
}

/// A position in a text of that length.
fn at_percent(percent: usize, length: usize) -> usize {
    length * percent / 100
}
