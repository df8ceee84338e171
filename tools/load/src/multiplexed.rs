//! What carries many requests on one connection: HTTP/2 over TCP, or HTTP/3.

use crate::http2::Http2;
use crate::http3::Http3;
use crate::streams::{Outcome, Stream, Streams};
use crate::target::Target;

/// The version of HTTP that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    Http3,
}

impl Protocol {
    /// The name in the report: that of ALPN.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
            Protocol::Http3 => "h3",
        }
    }

    /// Whether requests share a connection as streams.
    pub(crate) fn has_streams(self) -> bool {
        self != Protocol::Http1
    }
}

/// A request's fields and body, as HTTP/2 and HTTP/3 send them.
pub(crate) struct FieldRequest {
    /// Names in lower case, pseudo-header fields first.
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// A connection with streams.
pub(crate) enum Multiplexed {
    Http2(Box<Http2>),
    Http3(Box<Http3>),
}

impl Multiplexed {
    /// Whether the server takes another request now.
    pub(crate) fn may_ask(&self) -> bool {
        match self {
            Multiplexed::Http2(http2) => http2.may_ask(),
            Multiplexed::Http3(http3) => http3.may_ask(),
        }
    }

    /// Whether the server may take another request once others are answered.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Multiplexed::Http2(http2) => http2.is_open(),
            Multiplexed::Http3(http3) => http3.is_open(),
        }
    }

    /// Puts a request on a stream; `false`: there is none to be had at present.
    pub(crate) fn ask(
        &mut self,
        index: u32,
        target: &Target,
        intended_ns: u64,
        now_ns: u64,
    ) -> bool {
        match self {
            Multiplexed::Http2(http2) => {
                http2.ask(index, target, intended_ns, now_ns);
                true
            }
            Multiplexed::Http3(http3) => http3.ask(index, target, intended_ns, now_ns),
        }
    }

    /// When the oldest request under way was sent.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        match self {
            Multiplexed::Http2(http2) => http2.streams.oldest_ns(),
            Multiplexed::Http3(http3) => http3.streams.oldest_ns(),
        }
    }

    /// The requests that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<(Stream, Outcome)> {
        self.streams().take_ended()
    }

    /// Gives the room of a list back that [`Multiplexed::take_ended`] returned.
    pub(crate) fn reuse(&mut self, list: Vec<(Stream, Outcome)>) {
        self.streams().reuse(list);
    }

    fn streams(&mut self) -> &mut Streams {
        match self {
            Multiplexed::Http2(http2) => &mut http2.streams,
            Multiplexed::Http3(http3) => &mut http3.streams,
        }
    }
}
