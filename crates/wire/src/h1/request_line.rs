//! The request line (RFC 9112 section 3), as nginx reads it.

use super::error::HeadError;
use crate::Span;
use crate::message::{Method, RequestTarget, Strictness, TargetStop, Version};

/// The parts of a request line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestLine {
    pub(crate) target: RequestTarget,
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

impl From<TargetStop> for Stop {
    fn from(stop: TargetStop) -> Self {
        match stop {
            TargetStop::More => Stop::More,
            TargetStop::InvalidMethod => Stop::Refused(HeadError::InvalidMethod),
            TargetStop::UnknownMethod => Stop::Refused(HeadError::UnknownMethod),
            TargetStop::InvalidTarget => INVALID,
        }
    }
}

/// Parses the request line that begins at `start` into `parts`, which keep the parsed parts of a
/// refused line; returns the offset after the line.
pub(crate) fn parse(
    bytes: &[u8],
    start: usize,
    strictness: Strictness,
    parts: &mut RequestLine,
) -> Result<usize, Stop> {
    let mut cursor = Cursor {
        bytes,
        at: parts.target.parse(bytes, start, strictness)?,
        strict: strictness == Strictness::Rfc,
    };
    cursor.version(parts)?;
    let line_end = cursor.at;
    parts.line = Span::new(start, line_end);
    if parts.version != Version::Http09 {
        parts.protocol = Span::new(parts.protocol.start(), line_end);
    }
    let next = cursor.line_end()?;
    if parts.version == Version::Http09 && parts.target.method != Method::Get {
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
        let target = &mut parts.target;
        if target.method == Method::Connect {
            let slash = parts.protocol.start() + 4;
            target.path = Span::new(slash, slash + 1);
            target.origin = target.path;
            target.path_clean = true;
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

/// A minor version with three digits takes no more digits, as in nginx.
const VERSION_MINOR_MAX: u32 = 99;
