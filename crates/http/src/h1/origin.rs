//! HTTP/1 with the servers that requests are passed to: how a request is written, and how an answer
//! is read. It knows no connection and decides nothing.
//!
//! Answers of CGI applications have heads of the same lines, and are read here too.

use turnpike_wire::h1::{self, BodyDecoder, BodyState, HeadStep, ResponseHead};
use turnpike_wire::message::{BodyEnd, Delivery, Field, Fields, Head, HeadRules, Method};
use turnpike_wire::message::{RequestWriter, StatusLine, Strictness, Version};

use crate::received::Received;

/// Reads heads of answers, one after another.
#[derive(Default)]
pub struct HeadReader {
    /// Bytes looked at of a head that is not whole.
    scanned: usize,
    parsed: ResponseHead,
}

impl HeadReader {
    /// Takes what has come of a head, the answer to a request with `method`, and says whether that
    /// is all of it. A whole one is copied into `head`; what stands behind it is left in `input`,
    /// where it is.
    ///
    /// # Errors
    /// Why it is none, in nginx's words.
    pub fn read(
        &mut self,
        input: &mut Received,
        rules: &HeadRules,
        method: Method,
        head: &mut Head,
    ) -> Result<bool, &'static str> {
        let (scanned, parsed) = (self.scanned, &mut self.parsed);
        let read = h1::read_response(input, scanned, rules, method, parsed, head);
        self.pass_over(read, input)
    }

    /// Does as [`HeadReader::read`] for the answer of a CGI application (RFC 3875 section 6).
    ///
    /// # Errors
    /// Those of [`HeadReader::read`].
    pub fn read_cgi(
        &mut self,
        input: &mut Received,
        rules: &HeadRules,
        line: StatusLine,
        method: Method,
        head: &mut Head,
    ) -> Result<bool, &'static str> {
        let (scanned, parsed) = (self.scanned, &mut self.parsed);
        let read = h1::read_cgi_response(input, scanned, rules, line, method, parsed, head);
        self.pass_over(read, input)
    }

    /// Leaves what stands behind a head that is whole.
    fn pass_over(
        &mut self,
        read: Result<HeadStep, h1::ResponseError>,
        input: &mut Received,
    ) -> Result<bool, &'static str> {
        let is_whole = self.note(read)?;
        if is_whole {
            input.skip(self.parsed.head_len);
        }
        Ok(is_whole)
    }

    fn note(&mut self, read: Result<HeadStep, h1::ResponseError>) -> Result<bool, &'static str> {
        let (scanned, is_whole) = match read.map_err(h1::ResponseError::reason)? {
            HeadStep::Incomplete { scanned } => (scanned, false),
            HeadStep::Complete => (0, true),
        };
        self.scanned = scanned;
        Ok(is_whole)
    }

    /// Bytes of the head that was read last.
    pub fn head_bytes(&self) -> usize {
        self.parsed.head_len
    }

    /// What the head that was read last says of what follows it.
    pub fn delivery(&self) -> Delivery {
        self.parsed.delivery()
    }
}

/// A body that is not framed as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedBody;

/// What was read of a body.
pub struct BodyPiece<'a> {
    /// Bytes of the body.
    pub data: &'a [u8],
    /// Where in the input they begin.
    pub data_start: usize,
    /// Bytes of the input that are done with, the data included.
    pub taken_bytes: usize,
    /// Whether the body ends with it. One that ends with its connection never says so.
    pub is_last: bool,
}

/// Reads the body of an answer.
pub struct BodyReader(BodyDecoder);

impl BodyReader {
    /// A reader of a body whose end is marked so.
    pub fn new(end: BodyEnd, strictness: Strictness) -> Self {
        Self(BodyDecoder::of_response(end).under(strictness))
    }

    /// Reads the next piece of `input`. To be called again with the rest while something was taken.
    ///
    /// # Errors
    /// Only a chunked body can be malformed.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> Result<BodyPiece<'a>, MalformedBody> {
        let event = self.0.feed(input).map_err(|_| MalformedBody)?;
        Ok(BodyPiece {
            data: event.data.of(input),
            data_start: event.data.start(),
            taken_bytes: event.consumed,
            is_last: event.state == BodyState::Finished,
        })
    }

    /// Bytes of the body that are to come; `None`: nobody knows, or they have to be looked at.
    pub fn left_bytes(&self) -> Option<u64> {
        self.0.left_bytes()
    }

    /// Passes over that many bytes of a body of known length, which nobody looks at. Returns
    /// whether the body ends with them.
    pub fn skip(&mut self, bytes: u64) -> bool {
        self.0.skip(bytes)
    }

    /// Whether what has come of a chunked body ends within a chunk.
    pub fn is_inside_chunk(&self) -> bool {
        self.0.is_inside_chunk()
    }

    /// The trailer fields behind a body that is whole; `None`: it has none.
    pub fn trailers(&self) -> Option<Fields> {
        let section = self.0.trailers();
        if section.is_empty() {
            return None;
        }
        let mut trailers = Fields::default();
        h1::trailer_fields(section, |name, value| trailers.add(name, value));
        Some(trailers)
    }
}

/// Writes the head of a request as lines.
pub struct RequestLines<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> RequestLines<'a> {
    /// Appends lines of this version.
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    /// Ends the head.
    pub fn end(self) {
        h1::end(self.out);
    }
}

impl RequestWriter for RequestLines<'_> {
    fn line(&mut self, method: &[u8], target: &[u8]) {
        h1::request_line(self.out, method, target, self.version);
    }

    fn host(&mut self, host: &[u8]) {
        h1::field(self.out, b"Host", host);
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        h1::field(self.out, name, value);
    }

    fn span(&mut self, bytes: &[u8], field: &Field) {
        h1::write_field(self.out, bytes, field);
    }
}

/// Appends a piece of a body as a chunk (RFC 9112 section 7.1). An empty one would end the body:
/// it is left out.
pub fn write_chunk(piece: &[u8], out: &mut Vec<u8>) {
    if piece.is_empty() {
        return;
    }
    h1::write_chunk_head(out, piece.len() as u64);
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
}

/// Ends a body of chunks.
pub fn end_chunks(out: &mut Vec<u8>) {
    out.extend_from_slice(h1::LAST_CHUNK);
}
