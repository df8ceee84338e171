//! The head of a response, and its trailers, built from the fields of a section (RFC 9113 section
//! 8.3.2, RFC 9114 section 4.3.2).

use super::FieldSink;
use super::request::{Validity, is_of_connection};
use crate::message::{Head, HeadRules, Known, Strictness, Version, holds_control, trim};

/// Why a response is malformed (RFC 9113 section 8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFault {
    MissingStatus,
    DuplicateStatus,
    InvalidStatus,
    UnknownPseudoHeader,
    PseudoHeaderBehindField,
    InvalidName,
    InvalidValue,
    TooManyFields,
    TooLarge,
    TrailersWithoutEnd,
    DataBeforeHead,
    /// A frame came after the end.
    BehindEnd,
    /// The body is longer than announced.
    TooLong,
    /// The response ends before its announced length.
    EarlyEnd,
    /// A window was widened too far, or more bytes were sent than it allowed.
    Window,
}

impl ResponseFault {
    /// The server's fault, for the log.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            ResponseFault::MissingStatus => "upstream sent no :status header",
            ResponseFault::DuplicateStatus => "upstream sent duplicate :status header",
            ResponseFault::InvalidStatus => "upstream sent invalid :status",
            ResponseFault::UnknownPseudoHeader => "upstream sent unknown pseudo-header",
            ResponseFault::PseudoHeaderBehindField => "upstream sent out of order pseudo-headers",
            ResponseFault::InvalidName | ResponseFault::InvalidValue => {
                "upstream sent invalid header"
            }
            ResponseFault::TooManyFields => "upstream sent too many header lines",
            ResponseFault::TooLarge => "upstream sent too big header",
            ResponseFault::TrailersWithoutEnd => "upstream sent trailer without end stream flag",
            ResponseFault::DataBeforeHead => "upstream sent DATA frame before its header",
            ResponseFault::BehindEnd => "upstream sent frame for closed stream",
            ResponseFault::TooLong => {
                "upstream sent response body larger than indicated content length"
            }
            ResponseFault::EarlyEnd => "upstream prematurely closed stream",
            ResponseFault::Window => "upstream violated stream flow control",
        }
    }
}

/// Reads the fields of header blocks into heads and trailers; it is reused.
#[derive(Default)]
pub struct ResponseReader {
    /// The head, or the trailers as its fields.
    pub head: Head,
    rules: HeadRules,
    is_trailers: bool,
    fault: Option<ResponseFault>,
    /// The bytes of names and values.
    list_bytes: usize,
}

impl ResponseReader {
    /// Prepares for a head, or for trailers.
    pub(crate) fn begin(&mut self, version: Version, rules: &HeadRules, is_trailers: bool) {
        self.head.clear();
        self.head.version = version;
        self.rules = *rules;
        self.is_trailers = is_trailers;
        self.fault = None;
        self.list_bytes = 0;
    }

    /// Ends the block.
    ///
    /// # Errors
    /// The first fault of the block.
    pub(crate) fn finish(&mut self) -> Result<(), ResponseFault> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.head.status == 0 && !self.is_trailers => Err(ResponseFault::MissingStatus),
            None => Ok(()),
        }
    }

    fn pseudo_header(&mut self, name: &[u8], value: &[u8]) -> Result<(), ResponseFault> {
        if self.is_trailers || !self.head.fields.is_empty() {
            return Err(ResponseFault::PseudoHeaderBehindField);
        }
        if name != b":status" {
            return Err(ResponseFault::UnknownPseudoHeader);
        }
        if self.head.status != 0 {
            return Err(ResponseFault::DuplicateStatus);
        }
        self.head.status = match value {
            [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => {
                let digits = value.iter().map(|digit| u16::from(digit - b'0'));
                digits.fold(0, |number, digit| number * 10 + digit)
            }
            _ => return Err(ResponseFault::InvalidStatus),
        };
        Ok(())
    }

    fn response_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), ResponseFault> {
        if Validity::of(name).is_none() {
            return Err(ResponseFault::InvalidName);
        }
        let value = trim(value);
        let may_not_hold = match self.rules.strictness {
            Strictness::Rfc => holds_control(value),
            Strictness::Nginx => memchr::memchr3(b'\r', b'\n', 0, value).is_some(),
        };
        if may_not_hold {
            return Err(ResponseFault::InvalidValue);
        }
        // A connection field from a server is ignored, not refused.
        if is_of_connection(Known::of(name)) {
            return Ok(());
        }
        if self.head.fields.len() >= self.rules.fields_max {
            return Err(ResponseFault::TooManyFields);
        }
        self.head.fields.add(name, value);
        Ok(())
    }
}

impl FieldSink for ResponseReader {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        self.list_bytes = self.list_bytes.saturating_add(name.len() + value.len());
        let taken = match name.first() {
            _ if self.list_bytes > self.rules.head_bytes_max => Err(ResponseFault::TooLarge),
            Some(b':') => self.pseudo_header(name, value),
            _ => self.response_field(name, value),
        };
        self.fault = taken.err();
    }
}
