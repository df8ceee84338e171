//! The request line (RFC 9112 section 3), as nginx reads it.
//!
//! The parser makes one pass over the line. It also finds whether the path is already in normal
//! form, so that the usual request needs no second pass.

use super::error::HeadError;
use crate::Span;
use crate::message::{Method, Strictness, TargetForm, Version, is_token_byte};

/// The parts of a request line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestLine {
    pub(crate) method: Method,
    pub(crate) method_span: Span,
    pub(crate) target: Span,
    pub(crate) form: TargetForm,
    pub(crate) origin: Span,
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    pub(crate) path_clean: bool,
    pub(crate) version: Version,
    pub(crate) protocol: Span,
    pub(crate) line: Span,
}

/// Why the line cannot be parsed further.
pub(crate) enum Stop {
    /// The input ends before the line does.
    More,
    /// The line is refused.
    Refused(HeadError),
}

const INVALID: Stop = Stop::Refused(HeadError::InvalidRequestLine);

/// Parses the request line that begins at `start` into `parts`, which keep the parsed parts of a
/// refused line; returns the offset after the line.
pub(crate) fn parse(
    bytes: &[u8],
    start: usize,
    strictness: Strictness,
    parts: &mut RequestLine,
) -> Result<usize, Stop> {
    let strict = strictness == Strictness::Rfc;
    let mut cursor = Cursor {
        bytes,
        at: start,
        strict,
    };
    cursor.method(parts)?;
    let target_start = cursor.at;
    if parts.method == Method::Connect {
        cursor.authority_form(parts)?;
    } else if cursor.peek()? == b'/' {
        cursor.path_and_query(parts, target_start)?;
    } else if strict && parts.method == Method::Options && cursor.peek()? == b'*' {
        cursor.asterisk_form(parts)?;
    } else {
        cursor.absolute_form(parts)?;
    }
    parts.target = Span::new(target_start, cursor.at);
    cursor.version(parts)?;
    let line_end = cursor.at;
    parts.line = Span::new(start, line_end);
    if parts.version != Version::Http09 {
        parts.protocol = Span::new(parts.protocol.start(), line_end);
    }
    let next = cursor.line_end()?;
    if parts.version == Version::Http09 && parts.method != Method::Get {
        return Err(Stop::Refused(HeadError::InvalidHttp09Method));
    }
    Ok(next)
}

struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Whether the RFC's rules hold.
    strict: bool,
}

impl Cursor<'_> {
    fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::More)
    }

    fn skip_spaces(&mut self) -> Result<(), Stop> {
        while self.peek()? == b' ' {
            self.at += 1;
        }
        Ok(())
    }

    /// Moves to the first byte with one of the classes in `mask`, and returns its classes.
    fn skip_to(&mut self, mask: u8) -> Result<u8, Stop> {
        loop {
            let class = TARGET_CLASS[usize::from(self.peek()?)];
            if class & mask != 0 {
                return Ok(class);
            }
            self.at += 1;
        }
    }

    fn method(&mut self, parts: &mut RequestLine) -> Result<(), Stop> {
        let start = self.at;
        let mut byte = self.peek()?;
        while byte.is_ascii_uppercase() || byte == b'_' || byte == b'-' {
            self.at += 1;
            byte = self.peek()?;
        }
        if self.strict && (is_token_byte(byte) || self.at - start > METHOD_BYTES_MAX) {
            return Err(self.unknown_method(start)?);
        }
        if byte != b' ' || self.at == start {
            return Err(Stop::Refused(HeadError::InvalidMethod));
        }
        parts.method_span = Span::new(start, self.at);
        parts.method = Method::of(&self.bytes[start..self.at]);
        self.at += 1;
        self.skip_spaces()
    }

    /// The refusal of a method that this server cannot handle (RFC 9110 section 9.1, RFC 9112
    /// section 3).
    #[cold]
    fn unknown_method(&mut self, start: usize) -> Result<Stop, Stop> {
        while self.at - start <= METHOD_BYTES_MAX && is_token_byte(self.peek()?) {
            self.at += 1;
        }
        let is_token = self.at - start > METHOD_BYTES_MAX || self.peek()? == b' ';
        Ok(Stop::Refused(match is_token {
            true => HeadError::UnknownMethod,
            false => HeadError::InvalidMethod,
        }))
    }

    fn asterisk_form(&mut self, parts: &mut RequestLine) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        if self.peek()? != b' ' {
            return Err(INVALID);
        }
        parts.form = TargetForm::Asterisk;
        parts.path = Span::new(start, self.at);
        parts.origin = parts.path;
        parts.path_clean = true;
        Ok(())
    }

    /// Reads the path from its slash, the query, and the fragment, which belongs to neither.
    fn path_and_query(&mut self, parts: &mut RequestLine, start: usize) -> Result<(), Stop> {
        parts.path_clean = true;
        let mut class;
        loop {
            class = self.skip_to(SLASH | PERCENT | QUESTION | HASH | END | REFUSED)?;
            if class == SLASH {
                self.at += 1;
                parts.path_clean &= !matches!(self.peek()?, b'/' | b'.');
            } else if class == PERCENT {
                self.at += 1;
                parts.path_clean = false;
            } else {
                break;
            }
        }
        parts.path = Span::new(start, self.at);
        self.query(parts, class)?;
        parts.origin = Span::new(start, self.at);
        Ok(())
    }

    /// Reads the text after the path, which ended at a byte of `class`.
    fn query(&mut self, parts: &mut RequestLine, mut class: u8) -> Result<(), Stop> {
        if class == QUESTION {
            let start = self.at + 1;
            class = self.skip_to(HASH | END | REFUSED)?;
            parts.query = Some(Span::new(start, self.at));
        }
        if class == HASH {
            class = self.skip_to(END | REFUSED)?;
        }
        if class == END { Ok(()) } else { Err(INVALID) }
    }

    fn absolute_form(&mut self, parts: &mut RequestLine) -> Result<(), Stop> {
        let start = self.at;
        if !self.peek()?.is_ascii_alphabetic() {
            return Err(INVALID);
        }
        while is_scheme_byte(self.peek()?) {
            self.at += 1;
        }
        let scheme = Span::new(start, self.at);
        for expected in *b"://" {
            if self.peek()? != expected {
                return Err(INVALID);
            }
            self.at += 1;
        }
        let host_start = self.at;
        self.host()?;
        if self.peek()? == b':' {
            self.at += 1;
            self.digits()?;
        }
        let authority = Span::new(host_start, self.at);
        parts.form = TargetForm::Absolute { scheme, authority };
        // A target without a path means "/". The scheme has slashes after its colon; one of them is
        // used.
        let slash = scheme.end() + 1;
        match self.peek()? {
            b'/' => self.path_and_query(parts, self.at),
            b'?' => {
                let origin_start = self.at;
                parts.path = Span::new(slash, slash + 1);
                parts.path_clean = true;
                self.query(parts, QUESTION)?;
                parts.origin = Span::new(origin_start, self.at);
                Ok(())
            }
            b' ' => {
                parts.path = Span::new(slash, slash + 1);
                parts.origin = parts.path;
                parts.path_clean = true;
                Ok(())
            }
            _ => Err(INVALID),
        }
    }

    /// `host:port`, the port not empty, as `CONNECT` needs it.
    fn authority_form(&mut self, parts: &mut RequestLine) -> Result<(), Stop> {
        let start = self.at;
        self.host()?;
        if self.peek()? != b':' {
            return Err(INVALID);
        }
        self.at += 1;
        if !self.peek()?.is_ascii_digit() {
            return Err(INVALID);
        }
        self.digits()?;
        if self.peek()? != b' ' {
            return Err(INVALID);
        }
        parts.form = TargetForm::Authority {
            authority: Span::new(start, self.at),
        };
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Stop> {
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn host(&mut self) -> Result<(), Stop> {
        if self.peek()? != b'[' {
            while matches!(self.peek()?, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-') {
                self.at += 1;
            }
            return Ok(());
        }
        self.at += 1;
        while self.peek()? != b']' {
            if !is_ip_literal_byte(self.peek()?) {
                return Err(INVALID);
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    /// Reads spaces, the protocol and more spaces up to the line's end; HTTP/0.9 has none of these.
    fn version(&mut self, parts: &mut RequestLine) -> Result<(), Stop> {
        self.skip_spaces()?;
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"HTTP/1.1\r") {
            parts.version = Version::Http11;
            parts.protocol = Span::new(self.at, self.at + 8);
            self.connect_path(parts);
            self.at += 8;
            return Ok(());
        }
        if matches!(self.peek()?, b'\r' | b'\n') {
            parts.version = Version::Http09;
            return Ok(());
        }
        let start = self.at;
        for expected in *b"HTTP/" {
            if self.peek()? != expected {
                return Err(INVALID);
            }
            self.at += 1;
        }
        parts.protocol = Span::new(start, start + 5);
        self.connect_path(parts);
        parts.version = self.version_number()?;
        self.skip_spaces()
    }

    /// A `CONNECT` has no path; the slash in its protocol is used as one.
    fn connect_path(&self, parts: &mut RequestLine) {
        if parts.method == Method::Connect {
            let slash = parts.protocol.start() + 4;
            parts.path = Span::new(slash, slash + 1);
            parts.origin = parts.path;
            parts.path_clean = true;
        }
    }

    fn version_number(&mut self) -> Result<Version, Stop> {
        let mut major = 0;
        if self.peek()? == b'0' {
            return Err(INVALID);
        }
        loop {
            let byte = self.peek()?;
            if byte == b'.' && major > 0 {
                break;
            }
            if !byte.is_ascii_digit() {
                return Err(INVALID);
            }
            major = major * 10 + u32::from(byte - b'0');
            if major > 1 {
                return Err(Stop::Refused(HeadError::InvalidVersion));
            }
            self.at += 1;
        }
        self.at += 1;
        let mut minor = 0;
        if !self.peek()?.is_ascii_digit() {
            return Err(INVALID);
        }
        while self.peek()?.is_ascii_digit() {
            if minor > VERSION_MINOR_MAX {
                return Err(INVALID);
            }
            minor = minor * 10 + u32::from(self.peek()? - b'0');
            self.at += 1;
            if self.strict && self.peek()?.is_ascii_digit() {
                // Both numbers have one digit (RFC 9112 section 2.3).
                return Err(INVALID);
            }
        }
        if !matches!(self.peek()?, b' ' | b'\r' | b'\n') {
            return Err(INVALID);
        }
        Ok(if minor == 0 {
            Version::Http10
        } else {
            Version::Http11
        })
    }

    fn line_end(&mut self) -> Result<usize, Stop> {
        if self.peek()? == b'\r' {
            self.at += 1;
        }
        if self.peek()? == b'\n' {
            Ok(self.at + 1)
        } else {
            Err(INVALID)
        }
    }
}

/// Longest method in bytes; the longest registered one has 17.
const METHOD_BYTES_MAX: usize = 32;

/// A minor version with three digits takes no more digits, as in nginx.
const VERSION_MINOR_MAX: u32 = 99;

fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn is_ip_literal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-._~!$&'()*+,;=".contains(&byte)
}

const SLASH: u8 = 1;
const PERCENT: u8 = 2;
const QUESTION: u8 = 4;
const HASH: u8 = 8;
const END: u8 = 16;
const REFUSED: u8 = 32;

/// 0 for bytes without a special meaning in a target.
const TARGET_CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < b' ' {
        table[byte as usize] = REFUSED;
        byte += 1;
    }
    table[0x7f] = REFUSED;
    table[b'/' as usize] = SLASH;
    table[b'%' as usize] = PERCENT;
    table[b'?' as usize] = QUESTION;
    table[b'#' as usize] = HASH;
    table[b' ' as usize] = END;
    table[b'\r' as usize] = END;
    table[b'\n' as usize] = END;
    table
};
