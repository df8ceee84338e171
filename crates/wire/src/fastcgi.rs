//! FastCGI records in the role of the web server (FastCGI specification 1.0, sections 3 to 5): one
//! request on a connection at a time.
//!
//! Writers append to a buffer. [`RecordReader`] takes bytes in pieces of any size and classifies
//! them. It stores no content, so no record can make it grow.

use std::fmt;

use crate::Span;

#[cfg(test)]
mod tests;

/// The only version of the protocol.
const VERSION: u8 = 1;

/// The ID of the one request on a connection.
const REQUEST_ID: u16 = 1;

/// Bytes of a record's header (section 3.3).
const HEADER_BYTES: usize = 8;

/// The most content bytes of one record.
pub const CONTENT_BYTES_MAX: usize = u16::MAX as usize;

/// Records are padded to a multiple of this (section 3.3 recommends it).
const ALIGNMENT_BYTES: usize = 8;

/// The length of a name or value is one byte up to this limit, and four bytes above it (section
/// 3.4).
const SHORT_BYTES_MAX: usize = 127;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// `FCGI_RESPONDER` (section 6.2).
const RESPONDER: u16 = 1;

/// `FCGI_KEEP_CONN` (section 5.1).
const KEEP_CONNECTION: u8 = 1;

/// Appends the record that begins a request. `keeps_connection` asks the application not to close
/// the connection after its response.
pub fn write_begin(keeps_connection: bool, out: &mut Vec<u8>) {
    write_header(BEGIN_REQUEST, 8, 0, out);
    out.extend_from_slice(&RESPONDER.to_be_bytes());
    out.push(if keeps_connection { KEEP_CONNECTION } else { 0 });
    out.extend_from_slice(&[0; 5]);
}

/// Begins the parameters; returns the mark that [`end_params`] takes.
pub fn begin_params(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    start
}

/// Appends what stands before the value of a parameter (section 3.4). The value is appended next,
/// and then [`end_param`] called. Names and values are shorter than 2^31 bytes.
pub fn begin_param(name: &[u8], out: &mut Vec<u8>) {
    match name.len() {
        length @ ..=SHORT_BYTES_MAX => out.extend_from_slice(&[length as u8, 0]),
        length => {
            let [first, second, third, fourth] = long_length(length);
            out.extend_from_slice(&[first, second, third, fourth, 0]);
        }
    }
    out.extend_from_slice(name);
}

/// Ends the parameter with this name, whose value stands from `value` to the end.
pub fn end_param(name: &[u8], value: usize, out: &mut Vec<u8>) {
    let length = out.len() - value;
    let at = value - name.len() - 1;
    if length <= SHORT_BYTES_MAX {
        out[at] = length as u8;
    } else {
        out.splice(at..=at, long_length(length));
    }
}

fn long_length(length: usize) -> [u8; 4] {
    (length as u32 | 0x8000_0000).to_be_bytes()
}

/// Puts the parameters that were written since `start` into as many records as they need, and ends
/// them.
pub fn end_params(start: usize, out: &mut Vec<u8>) {
    let content = start + HEADER_BYTES;
    let length = out.len() - content;
    if length <= CONTENT_BYTES_MAX {
        // The usual case: one record holds them in place.
        let padding = padding_of(length);
        out[start..content].copy_from_slice(&header(PARAMS, length, padding));
        out.resize(out.len() + padding, 0);
        if length == 0 {
            return;
        }
    } else {
        let params = out.split_off(content);
        out.truncate(start);
        write_stream(PARAMS, &params, out);
    }
    write_header(PARAMS, 0, 0, out);
}

/// Appends a piece of the request's body, in as many records as it needs. An empty piece appends
/// nothing, because an empty record would end the body.
pub fn write_stdin(piece: &[u8], out: &mut Vec<u8>) {
    write_stream(STDIN, piece, out);
}

/// Appends the end of the request's body. A request without a body needs it too.
pub fn write_stdin_end(out: &mut Vec<u8>) {
    write_header(STDIN, 0, 0, out);
}

fn write_stream(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    for part in content.chunks(CONTENT_BYTES_MAX) {
        let padding = padding_of(part.len());
        write_header(kind, part.len(), padding, out);
        out.extend_from_slice(part);
        out.resize(out.len() + padding, 0);
    }
}

fn write_header(kind: u8, content: usize, padding: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(kind, content, padding));
}

/// A record's header. The lengths fit, because the callers split the content.
fn header(kind: u8, content: usize, padding: usize) -> [u8; HEADER_BYTES] {
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    let [high, low] = (content as u16).to_be_bytes();
    [VERSION, kind, id_high, id_low, high, low, padding as u8, 0]
}

fn padding_of(content: usize) -> usize {
    content.next_multiple_of(ALIGNMENT_BYTES) - content
}

/// Why a record was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordError {
    /// A version other than 1.
    Version(u8),
    /// A kind that no application sends to a web server.
    Kind(u8),
    /// A record of another request.
    RequestId(u16),
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Version(version) => write!(
                formatter,
                "upstream sent unsupported FastCGI protocol version: {version}"
            ),
            RecordError::Kind(kind) => {
                write!(
                    formatter,
                    "upstream sent invalid FastCGI record type: {kind}"
                )
            }
            RecordError::RequestId(id) => match id.to_be_bytes() {
                [0, low] => write!(
                    formatter,
                    "upstream sent unexpected FastCGI request id low byte: {low}"
                ),
                [high, _] => write!(
                    formatter,
                    "upstream sent unexpected FastCGI request id high byte: {high}"
                ),
            },
        }
    }
}

/// The result of one step of a [`RecordReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing for the caller: a header, padding, or no byte.
    None,
    /// Bytes of the response.
    Stdout(Span),
    /// The response is complete.
    StdoutEnd,
    /// Bytes for the error log; `last` if they end their record.
    Stderr {
        /// The range in the input.
        text: Span,
        last: bool,
    },
    /// The end of the request.
    End,
}

/// Reads the records of one response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordReader {
    /// The bytes of the current header so far.
    header: [u8; HEADER_BYTES],
    header_bytes: u8,
    kind: u8,
    /// The content bytes of the current record that have not come yet.
    content_bytes: usize,
    padding_bytes: usize,
    ended: bool,
}

impl RecordReader {
    /// A reader at the beginning of a response.
    #[must_use]
    pub fn new() -> RecordReader {
        RecordReader::default()
    }

    /// Whether the record that ends the request has come, with its padding.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The bytes of the current record that have not come yet, as far as its header tells them; 0
    /// between two records.
    #[must_use]
    pub fn left_bytes(&self) -> usize {
        match usize::from(self.header_bytes) {
            0 => 0,
            HEADER_BYTES => self.content_bytes + self.padding_bytes,
            come => HEADER_BYTES - come,
        }
    }

    /// Reads the next bytes; returns their meaning and how many were taken. It takes no byte from
    /// an empty input, and none after the end of the request.
    ///
    /// # Errors
    /// [`RecordError`] if a header does not belong to this request.
    pub fn step(&mut self, input: &[u8]) -> Result<(Part, usize), RecordError> {
        if self.ended || input.is_empty() {
            return Ok((Part::None, 0));
        }
        if usize::from(self.header_bytes) < HEADER_BYTES {
            return self.take_header(input);
        }
        if self.content_bytes > 0 {
            let taken = input.len().min(self.content_bytes);
            self.content_bytes -= taken;
            let part = self.content(taken);
            return Ok((self.close_record().unwrap_or(part), taken));
        }
        let taken = input.len().min(self.padding_bytes);
        self.padding_bytes -= taken;
        Ok((self.close_record().unwrap_or(Part::None), taken))
    }

    fn content(&self, taken: usize) -> Part {
        let text = Span::new(0, taken);
        match self.kind {
            STDOUT => Part::Stdout(text),
            STDERR => Part::Stderr {
                text,
                last: self.content_bytes == 0,
            },
            _ => Part::None,
        }
    }

    fn take_header(&mut self, input: &[u8]) -> Result<(Part, usize), RecordError> {
        let filled = usize::from(self.header_bytes);
        let taken = input.len().min(HEADER_BYTES - filled);
        self.header[filled..filled + taken].copy_from_slice(&input[..taken]);
        self.header_bytes += taken as u8;
        if filled + taken < HEADER_BYTES {
            return Ok((Part::None, taken));
        }
        let [version, kind, id_high, id_low, high, low, padding, _] = self.header;
        let id = u16::from_be_bytes([id_high, id_low]);
        match () {
            () if version != VERSION => return Err(RecordError::Version(version)),
            () if !matches!(kind, STDOUT | STDERR | END_REQUEST) => {
                return Err(RecordError::Kind(kind));
            }
            () if id != REQUEST_ID => return Err(RecordError::RequestId(id)),
            () => {}
        }
        self.kind = kind;
        self.content_bytes = usize::from(u16::from_be_bytes([high, low]));
        self.padding_bytes = usize::from(padding);
        let closes_stdout = kind == STDOUT && self.content_bytes == 0;
        let part = self.close_record().unwrap_or(Part::None);
        Ok((if closes_stdout { Part::StdoutEnd } else { part }, taken))
    }

    /// Prepares for the next record if the current one is complete.
    fn close_record(&mut self) -> Option<Part> {
        if self.content_bytes > 0 || self.padding_bytes > 0 {
            return None;
        }
        self.header_bytes = 0;
        self.ended = self.kind == END_REQUEST;
        self.ended.then_some(Part::End)
    }
}
