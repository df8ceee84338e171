//! HTTP/1.1 as the loop sees it: bytes of an answer in, "more" or "answered" out.
//!
//! Knows no socket and no clock. Heads are parsed by `turnpike-wire`; a body is measured, and
//! compared with what is expected, but never kept.

use turnpike_wire::h1::{BodyState, ChunkedDecoder, HeadStep, ResponseHead, parse_response};
use turnpike_wire::message::{BodyEnd, HeadRules, Method, Strictness};

/// Longest answer head that is waited for; no server sends more by accident.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Interim answers (100, 103) allowed before the final one.
const INTERIM_MAX: u8 = 8;

/// The answer is not HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadBytes;

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The connection cannot carry another request.
    pub(crate) close: bool,
    /// The body was the expected one, or none was expected.
    pub(crate) body_matches: bool,
}

impl Answer {
    /// In place of an answer where nothing was asked.
    pub(crate) const NONE: Answer = Answer {
        status: 0,
        close: true,
        body_matches: true,
    };
}

/// What one call of [`Http1::feed`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Bytes taken from the input; all of it, unless the answer ended before.
    pub(crate) consumed: usize,
    /// Present when the answer is whole.
    pub(crate) answer: Option<Answer>,
}

/// How far an answer has come; one per connection.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    stage: Stage,
    /// The part of a head that has arrived; empty unless the head came in pieces.
    partial: Vec<u8>,
    status: u16,
    close: bool,
    interim: u8,
    /// Body bytes seen, for the comparison.
    body_bytes: u64,
    body_differs: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Head,
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

/// The parser's buffers; one per thread.
///
/// Answers to the same request have the same head, to the byte, until its date changes: `head`
/// then still holds what they mean, and comparing is ten times cheaper than parsing.
pub(crate) struct Http1 {
    head: ResponseHead,
    /// The bytes `head` was parsed from, and for which kind of request.
    parsed: Vec<u8>,
    parsed_head_only: bool,
    rules: HeadRules,
}

impl Exchange {
    /// Forgets the answer, to await the next one.
    pub(crate) fn reset(&mut self) {
        self.stage = Stage::Head;
        self.partial.clear();
        self.interim = 0;
        self.body_bytes = 0;
        self.body_differs = false;
    }

    /// Body bytes that may be thrown away unseen, when their number is known.
    pub(crate) fn discardable(&self) -> u64 {
        match self.stage {
            Stage::Length(left) => left,
            _ => 0,
        }
    }

    /// Counts body bytes that were thrown away; the answer, if that was all.
    pub(crate) fn discarded(&mut self, count: u64) -> Option<Answer> {
        let Stage::Length(left) = &mut self.stage else {
            return None;
        };
        *left = left.saturating_sub(count);
        self.body_bytes += count;
        (*left == 0).then(|| self.answer(None))
    }

    /// The answer, if the end of the stream is what ends it.
    pub(crate) fn end_of_stream(&mut self, expected: Option<&[u8]>) -> Option<Answer> {
        matches!(self.stage, Stage::UntilClose).then(|| self.answer(expected))
    }

    fn answer(&mut self, expected: Option<&[u8]>) -> Answer {
        let whole = expected.is_none_or(|body| body.len() as u64 == self.body_bytes);
        Answer {
            status: self.status,
            close: self.close,
            body_matches: whole && !self.body_differs,
        }
    }

    fn body(&mut self, data: &[u8], expected: Option<&[u8]>) {
        if let Some(expected) = expected {
            let start = usize::try_from(self.body_bytes).unwrap_or(usize::MAX);
            let same = expected
                .get(start..)
                .and_then(|rest| rest.get(..data.len()));
            self.body_differs |= same != Some(data);
        }
        self.body_bytes += data.len() as u64;
    }
}

impl Http1 {
    /// A parser with grown buffers.
    pub(crate) fn new() -> Self {
        let rules = HeadRules {
            head_bytes_max: HEAD_BYTES_MAX,
            // What is measured may be any server.
            strictness: Strictness::Nginx,
            ..HeadRules::default()
        };
        Http1 {
            head: ResponseHead::default(),
            parsed: Vec::new(),
            parsed_head_only: false,
            rules,
        }
    }

    /// Reads on in an answer. `head_only` is whether the request's method was HEAD.
    ///
    /// # Errors
    /// When the bytes are no HTTP answer.
    pub(crate) fn feed(
        &mut self,
        exchange: &mut Exchange,
        input: &[u8],
        head_only: bool,
        expected: Option<&[u8]>,
    ) -> Result<Fed, BadBytes> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let answer = match &mut exchange.stage {
                Stage::Head => {
                    let Some(taken) = self.head(exchange, rest, head_only)? else {
                        return Ok(Fed {
                            consumed: input.len(),
                            answer: None,
                        });
                    };
                    at += taken;
                    match exchange.stage {
                        Stage::Length(0) => Some(exchange.answer(expected)),
                        _ => None,
                    }
                }
                Stage::Length(left) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= taken as u64;
                    let done = *left == 0;
                    exchange.body(rest.get(..taken).unwrap_or_default(), expected);
                    at += taken;
                    done.then(|| exchange.answer(expected))
                }
                Stage::Chunked(decoder) => {
                    let event = decoder.feed(rest).map_err(|_| BadBytes)?;
                    exchange.body(event.data.of(rest), expected);
                    at += event.consumed;
                    (event.state == BodyState::Finished).then(|| exchange.answer(expected))
                }
                Stage::UntilClose => {
                    exchange.body(rest, expected);
                    at = input.len();
                    None
                }
            };
            if answer.is_some() || at >= input.len() {
                return Ok(Fed {
                    consumed: at,
                    answer,
                });
            }
        }
    }

    /// Reads the head; how many bytes of `rest` it took, or `None` when more must come.
    fn head(
        &mut self,
        exchange: &mut Exchange,
        rest: &[u8],
        head_only: bool,
    ) -> Result<Option<usize>, BadBytes> {
        let before = exchange.partial.len();
        if before > 0 {
            exchange.partial.extend_from_slice(rest);
        }
        let buffer = if before > 0 {
            exchange.partial.as_slice()
        } else {
            rest
        };
        let known = !self.parsed.is_empty() && self.parsed_head_only == head_only;
        if known && before == 0 && rest.starts_with(&self.parsed) {
            self.begin_body(exchange)?;
            return Ok(Some(self.parsed.len()));
        }
        self.parsed.clear();
        // The parser is shared by all connections, so a head in pieces is read from its start
        // again; answers' heads come whole, or nearly so.
        let method = if head_only { Method::Head } else { Method::Get };
        let step = parse_response(buffer, 0, &self.rules, method, &mut self.head);
        match step.map_err(|_| BadBytes)? {
            HeadStep::Incomplete { .. } => {
                if buffer.len() > HEAD_BYTES_MAX {
                    return Err(BadBytes);
                }
                if before == 0 {
                    exchange.partial.extend_from_slice(rest);
                }
                Ok(None)
            }
            HeadStep::Complete => {
                let taken = self.head.head_len.saturating_sub(before);
                self.parsed
                    .extend_from_slice(buffer.get(..self.head.head_len).unwrap_or_default());
                self.parsed_head_only = head_only;
                self.begin_body(exchange)?;
                Ok(Some(taken))
            }
        }
    }

    fn begin_body(&self, exchange: &mut Exchange) -> Result<(), BadBytes> {
        exchange.partial.clear();
        exchange.status = self.head.status;
        exchange.close = !self.head.keep_alive();
        exchange.stage = match self.head.framing {
            _ if self.head.is_interim() => {
                exchange.interim += 1;
                if exchange.interim > INTERIM_MAX {
                    return Err(BadBytes);
                }
                Stage::Head
            }
            BodyEnd::None => Stage::Length(0),
            BodyEnd::Length(length) => Stage::Length(length),
            BodyEnd::Marked => Stage::Chunked(ChunkedDecoder::new().under(Strictness::Nginx)),
            BodyEnd::UntilClose => Stage::UntilClose,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
