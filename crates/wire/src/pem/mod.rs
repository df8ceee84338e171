//! A reader of PEM texts (RFC 7468) that takes the same lines as OpenSSL 3, for the same blocks and
//! the same faults.
//!
//! The RFC lets parsers differ, and files that people put together by hand are read by several. So
//! what OpenSSL passes over is shown too: the caller sees what stands between blocks, and the lines
//! of a block as they are written.

mod base64;

use std::fmt;

/// The most bytes that OpenSSL takes for a line at a time.
const LINE_BYTES_MAX: usize = 254;

/// The most bytes of a line of data behind a header (RFC 1421 section 4.3.2.4).
const DATA_LINE_BYTES_MAX: usize = 64;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// The byte order mark of UTF-8. It may stand before the first line of a file, and of each block:
/// files that begin with one are joined.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A part of a PEM text.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// What is in no block; never empty.
    Text(Lines<'a>),
    Block(Block<'a>),
}

/// Whole lines, or the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines<'a> {
    /// The number of the first line; that of the text is 1.
    pub line: usize,
    pub bytes: &'a [u8],
}

/// A block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The number of its first line.
    pub line: usize,
    /// The words of its first line, such as `CERTIFICATE`.
    pub label: &'a [u8],
    /// The lines of its header (RFC 1421); usually empty.
    pub header: Vec<u8>,
    /// The decoded data; never empty.
    pub data: Vec<u8>,
    /// The lines after the first one, with the last one.
    pub body: Lines<'a>,
}

/// A block that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PemError {
    pub fault: Fault,
    /// The number of the line.
    pub line: usize,
}

/// The fault of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The last line is missing, is another block's, or has something behind it.
    BadEndLine,
    /// The data is not base64.
    BadBase64,
    /// There is no data.
    Empty,
    /// A line of data behind a header is too long.
    LongLine,
}

/// OpenSSL's words, where it has some.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Fault::BadEndLine => "error:04800066:PEM routines::bad end line",
            Fault::BadBase64 => "error:04800064:PEM routines::bad base64 decode",
            Fault::Empty => "no data",
            Fault::LongLine => "too long a line",
        })
    }
}

impl fmt::Display for PemError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} in line {}", self.fault, self.line)
    }
}

impl std::error::Error for PemError {}

/// The pieces of a text, in order. They end after an error.
#[derive(Debug)]
pub struct Pieces<'a> {
    rest: &'a [u8],
    /// The number of the next line.
    line: usize,
    next: Option<Result<Block<'a>, PemError>>,
}

/// A line as OpenSSL takes it.
struct Line<'a> {
    number: usize,
    /// Without what is behind a NUL.
    shown: &'a [u8],
    /// Whether the rest of it is taken for the next line.
    is_cut: bool,
}

/// A line without its end and without white space before that. As in OpenSSL, all bytes outside of
/// ASCII count as such.
fn trimmed(line: &[u8]) -> &[u8] {
    let is_shown = |byte: &u8| (b'!'..0x80).contains(byte);
    let end = line.iter().rposition(is_shown).map_or(0, |last| last + 1);
    &line[..end]
}

/// What the lines before are, where a header may have begun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    /// Data or a header.
    Unknown,
    Begun,
    Over,
}

impl<'a> Pieces<'a> {
    /// The pieces of this text.
    pub fn new(text: &'a [u8]) -> Pieces<'a> {
        Pieces {
            rest: text,
            line: 1,
            next: None,
        }
    }

    /// The next line; `None` at the end, and at a NUL that begins a line, where OpenSSL ends.
    fn line(&mut self) -> Option<Line<'a>> {
        let part = &self.rest[..self.rest.len().min(LINE_BYTES_MAX)];
        let end = memchr::memchr(b'\n', part).map_or(part.len(), |at| at + 1);
        let shown = part[..end].split(|byte| *byte == 0).next()?;
        if shown.is_empty() {
            return None;
        }
        let number = self.line;
        self.rest = &self.rest[end..];
        self.line += usize::from(part[end - 1] == b'\n');
        Some(Line {
            number,
            shown,
            is_cut: shown.len() == LINE_BYTES_MAX && !shown.ends_with(b"\n"),
        })
    }

    /// Reads the block after its first line.
    fn block(&mut self, line: usize, label: &'a [u8]) -> Result<Block<'a>, PemError> {
        let (body, body_line) = (self.rest, self.line);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let (mut header, mut was_cut, mut is_last) = (Header::Unknown, false, false);
        loop {
            let fault = |fault, line| Err(PemError { fault, line });
            let Some(line) = self.line() else {
                return fault(Fault::BadEndLine, self.line);
            };
            let is_rest = std::mem::replace(&mut was_cut, line.is_cut);
            if header == Header::Unknown && line.shown.contains(&b':') {
                header = Header::Begun;
            }
            let text = trimmed(line.shown);
            if text.is_empty() {
                if !is_rest && header == Header::Over {
                    return fault(Fault::BadEndLine, line.number);
                }
                if !is_rest {
                    header = Header::Over;
                }
                continue;
            }
            if let Some(end) = text.strip_prefix(END) {
                if end.strip_prefix(label) != Some(DASHES) {
                    return fault(Fault::BadEndLine, line.number);
                }
                break;
            }
            if is_last {
                return fault(Fault::BadEndLine, line.number);
            }
            if header == Header::Over {
                if text.len() > DATA_LINE_BYTES_MAX {
                    return fault(Fault::LongLine, line.number);
                }
                is_last = text.len() < DATA_LINE_BYTES_MAX;
            }
            let part = if header == Header::Over {
                &mut second
            } else {
                &mut first
            };
            part.extend_from_slice(text);
            part.push(b'\n');
        }
        if header == Header::Unknown {
            std::mem::swap(&mut first, &mut second);
        }
        let fault = |fault| PemError { fault, line };
        let data = base64::decode(&second).ok_or_else(|| fault(Fault::BadBase64))?;
        if data.is_empty() {
            return Err(fault(Fault::Empty));
        }
        Ok(Block {
            line,
            label,
            header: first,
            data,
            body: Lines {
                line: body_line,
                bytes: &body[..body.len() - self.rest.len()],
            },
        })
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<Piece<'a>, PemError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(block) = self.next.take() {
            return Some(block.map(Piece::Block));
        }
        let (start, start_line) = (self.rest, self.line);
        let mut text = start;
        let mut is_first = true;
        let begun = loop {
            let before = self.rest.len();
            let Some(line) = self.line() else {
                break None;
            };
            let shown = if std::mem::take(&mut is_first) && line.shown.len() > 3 {
                line.shown.strip_prefix(BYTE_ORDER_MARK)
            } else {
                None
            };
            let shown = trimmed(shown.unwrap_or(line.shown));
            let label = shown.strip_prefix(BEGIN);
            if let Some(label) = label.and_then(|label| label.strip_suffix(DASHES)) {
                text = &start[..start.len() - before];
                break Some((line.number, label));
            }
        };
        match begun {
            Some((number, label)) => {
                let block = self.block(number, label);
                if block.is_err() {
                    self.rest = &[];
                }
                self.next = Some(block);
            }
            None => self.rest = &[],
        }
        if text.is_empty() {
            return self.next.take().map(|block| block.map(Piece::Block));
        }
        Some(Ok(Piece::Text(Lines {
            line: start_line,
            bytes: text,
        })))
    }
}

#[cfg(test)]
mod tests;
