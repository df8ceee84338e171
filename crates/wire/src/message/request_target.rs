//! Method and target of a request (RFC 9112 section 3, RFC 9113 section 8.3.1), as nginx reads them
//! in the request line of any version.
//!
//! The parser makes one pass over the text. It also finds whether the path is already in normal
//! form, so that the usual request needs no second pass.

use super::head::TargetForm;
use super::method::Method;
use super::strictness::{Strictness, is_token_byte};
use crate::Span;

/// A method and a target, as spans of the text that they stand in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    pub(crate) method: Method,
    pub(crate) method_span: Span,
    /// The target as written.
    pub(crate) written: Span,
    pub(crate) form: TargetForm,
    pub(crate) origin: Span,
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    pub(crate) path_clean: bool,
}

/// Why a target cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetStop {
    /// The text ends before the target does.
    More,
    /// The method has bytes that nginx takes in none.
    InvalidMethod,
    /// The method is none that this server can handle.
    UnknownMethod,
    /// The target has none of the forms that the method allows.
    InvalidTarget,
}

impl RequestTarget {
    /// Reads a method, spaces and a target from `start` to the space or line end after them;
    /// returns the offset of that. The parsed parts of a refused target are kept.
    ///
    /// # Errors
    /// See [`TargetStop`].
    pub(crate) fn parse(
        &mut self,
        bytes: &[u8],
        start: usize,
        strictness: Strictness,
    ) -> Result<usize, TargetStop> {
        let strict = strictness == Strictness::Rfc;
        let mut cursor = Cursor {
            bytes,
            at: start,
            strict,
        };
        cursor.method(self)?;
        let target_start = cursor.at;
        if self.method == Method::Connect {
            cursor.authority_form(self)?;
        } else if cursor.peek()? == b'/' {
            cursor.path_and_query(self, target_start)?;
        } else if strict && self.method == Method::Options && cursor.peek()? == b'*' {
            cursor.asterisk_form(self)?;
        } else {
            cursor.absolute_form(self)?;
        }
        self.written = Span::new(target_start, cursor.at);
        Ok(cursor.at)
    }
}

struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Whether the RFC's rules hold.
    strict: bool,
}

impl Cursor<'_> {
    fn peek(&self) -> Result<u8, TargetStop> {
        self.bytes.get(self.at).copied().ok_or(TargetStop::More)
    }

    /// Moves to the first byte with one of the classes in `mask`, and returns its classes.
    fn skip_to(&mut self, mask: u8) -> Result<u8, TargetStop> {
        loop {
            let class = TARGET_CLASS[usize::from(self.peek()?)];
            if class & mask != 0 {
                return Ok(class);
            }
            self.at += 1;
        }
    }

    fn method(&mut self, parts: &mut RequestTarget) -> Result<(), TargetStop> {
        let start = self.at;
        let mut byte = self.peek()?;
        while byte.is_ascii_uppercase() || byte == b'_' || byte == b'-' {
            self.at += 1;
            byte = match self.peek() {
                // No more of it is awaited.
                Err(_) if self.strict && self.at - start > METHOD_BYTES_MAX => {
                    return Err(TargetStop::UnknownMethod);
                }
                peeked => peeked?,
            };
        }
        if self.strict && (is_token_byte(byte) || self.at - start > METHOD_BYTES_MAX) {
            return Err(self.unknown_method(start)?);
        }
        if byte != b' ' || self.at == start {
            return Err(TargetStop::InvalidMethod);
        }
        parts.method_span = Span::new(start, self.at);
        parts.method = Method::of(&self.bytes[start..self.at]);
        self.at += 1;
        while self.peek()? == b' ' {
            self.at += 1;
        }
        Ok(())
    }

    /// The refusal of a method that this server cannot handle (RFC 9110 section 9.1, RFC 9112
    /// section 3).
    #[cold]
    fn unknown_method(&mut self, start: usize) -> Result<TargetStop, TargetStop> {
        while self.at - start <= METHOD_BYTES_MAX && is_token_byte(self.peek()?) {
            self.at += 1;
        }
        let is_token = self.at - start > METHOD_BYTES_MAX || self.peek()? == b' ';
        Ok(if is_token {
            TargetStop::UnknownMethod
        } else {
            TargetStop::InvalidMethod
        })
    }

    fn asterisk_form(&mut self, parts: &mut RequestTarget) -> Result<(), TargetStop> {
        let start = self.at;
        self.at += 1;
        if self.peek()? != b' ' {
            return Err(TargetStop::InvalidTarget);
        }
        parts.form = TargetForm::Asterisk;
        parts.path = Span::new(start, self.at);
        parts.origin = parts.path;
        parts.path_clean = true;
        Ok(())
    }

    /// Reads the path from its slash, the query, and the fragment, which belongs to neither.
    fn path_and_query(
        &mut self,
        parts: &mut RequestTarget,
        start: usize,
    ) -> Result<(), TargetStop> {
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
    fn query(&mut self, parts: &mut RequestTarget, mut class: u8) -> Result<(), TargetStop> {
        if class == QUESTION {
            let start = self.at + 1;
            class = self.skip_to(HASH | END | REFUSED)?;
            parts.query = Some(Span::new(start, self.at));
        }
        if class == HASH {
            class = self.skip_to(END | REFUSED)?;
        }
        if class == END {
            Ok(())
        } else {
            Err(TargetStop::InvalidTarget)
        }
    }

    fn absolute_form(&mut self, parts: &mut RequestTarget) -> Result<(), TargetStop> {
        let start = self.at;
        if !self.peek()?.is_ascii_alphabetic() {
            return Err(TargetStop::InvalidTarget);
        }
        while is_scheme_byte(self.peek()?) {
            self.at += 1;
        }
        let scheme = Span::new(start, self.at);
        for expected in *b"://" {
            if self.peek()? != expected {
                return Err(TargetStop::InvalidTarget);
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
            _ => Err(TargetStop::InvalidTarget),
        }
    }

    /// `host:port`, the port not empty, as `CONNECT` needs it.
    fn authority_form(&mut self, parts: &mut RequestTarget) -> Result<(), TargetStop> {
        let start = self.at;
        self.host()?;
        if self.peek()? != b':' {
            return Err(TargetStop::InvalidTarget);
        }
        self.at += 1;
        if !self.peek()?.is_ascii_digit() {
            return Err(TargetStop::InvalidTarget);
        }
        self.digits()?;
        if self.peek()? != b' ' {
            return Err(TargetStop::InvalidTarget);
        }
        parts.form = TargetForm::Authority {
            authority: Span::new(start, self.at),
        };
        Ok(())
    }

    fn digits(&mut self) -> Result<(), TargetStop> {
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn host(&mut self) -> Result<(), TargetStop> {
        if self.peek()? != b'[' {
            while matches!(self.peek()?, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-') {
                self.at += 1;
            }
            return Ok(());
        }
        self.at += 1;
        while self.peek()? != b']' {
            if !is_ip_literal_byte(self.peek()?) {
                return Err(TargetStop::InvalidTarget);
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }
}

/// Longest method in bytes; the longest registered one has 17.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

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
