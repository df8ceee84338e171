//! The protocols that origins speak: requests are read and answers written by code of their own,
//! which shares nothing with the server's.
//!
//! A reader accepts only what a correct server in front of an origin writes, and reports the error
//! in anything else.

mod cgi;
mod fastcgi;
mod http1;
mod memcached;
mod parts;
mod scgi;
mod uwsgi;

pub(crate) use parts::{ParsedRequest, Written};

use self::parts::SURPLUS;
use crate::answer::{Answer, Disorder};

/// A protocol between the lane and its origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    FastCgi,
    Scgi,
    Uwsgi,
    Memcached,
}

/// The protocols beside HTTP/1; a run has one of them.
pub(crate) const OTHERS: &[Protocol] = &[
    Protocol::FastCgi,
    Protocol::Scgi,
    Protocol::Uwsgi,
    Protocol::Memcached,
];

/// All protocols.
pub(crate) const ALL: [Protocol; 5] = [
    Protocol::Http1,
    Protocol::FastCgi,
    Protocol::Scgi,
    Protocol::Uwsgi,
    Protocol::Memcached,
];

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

impl Protocol {
    /// The prefix of its directives, which names its location and its group of servers too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "proxy",
            Protocol::FastCgi => "fastcgi",
            Protocol::Scgi => "scgi",
            Protocol::Uwsgi => "uwsgi",
            Protocol::Memcached => "memcached",
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
            Protocol::Http1 | Protocol::Memcached => false,
            Protocol::FastCgi | Protocol::Scgi | Protocol::Uwsgi => true,
        }
    }

    /// Reads a request; `None` if it is incomplete.
    ///
    /// # Errors
    /// The fault of the request.
    pub(crate) fn read(self, input: &[u8]) -> Result<Option<ParsedRequest>, String> {
        match self {
            Protocol::Http1 => http1::read(input),
            Protocol::FastCgi => fastcgi::read(input),
            Protocol::Scgi => scgi::read(input),
            Protocol::Uwsgi => uwsgi::read(input),
            Protocol::Memcached => memcached::read(input),
        }
    }

    /// Writes an answer whose body has this number.
    pub(crate) fn write(self, answer: &Answer, content: u64, asked: &ParsedRequest) -> Written {
        let mut written = match self {
            Protocol::Http1 => http1::write(answer, content, asked),
            Protocol::FastCgi => fastcgi::write(answer, content, asked),
            Protocol::Scgi | Protocol::Uwsgi => scgi::write(answer, content, asked),
            Protocol::Memcached => memcached::write(answer, content, asked),
        };
        if answer.disorder == Some(Disorder::Surplus) && !written.is_last {
            written.bytes.extend_from_slice(SURPLUS);
        }
        written
    }
}
