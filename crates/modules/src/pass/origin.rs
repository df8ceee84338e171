//! What the engine does not know: the protocol that a family's servers talk.
//!
//! ```text
//!  write_head ─► body in its format ─► server ─► record layer ─► read_head ─► body
//! ```
//!
//! An origin only turns questions into bytes and bytes into heads. It sees no connection and
//! decides nothing about tries.

use turnpike_http::exchange::Exchange;
use turnpike_http::h1::origin::{end_chunks, write_chunk};
use turnpike_http::received::Received;
use turnpike_http::rooms::Rooms;
use turnpike_wire::message::{Fields, Head, Version};

use super::head::{Progress, ReceivedHead};
use super::response_store::Recorder;
use super::server::Stop;
use super::settings::Passing;
use super::target::{PassUrl, UrlError};

/// The protocol of a family's servers, with what the location's directives say of it.
pub(crate) trait Origin: Send + Sync {
    /// Whether the exchange is answered here, with its response set, since it may not go further.
    fn ends_here(&self, _exchange: &mut Exchange) -> bool {
        false
    }

    /// The status that answers the exchange, where its request is none for such servers.
    fn refused(&self, _exchange: &mut Exchange) -> Option<u16> {
        None
    }

    /// Reads an address that is made of variables.
    ///
    /// # Errors
    /// See [`UrlError`].
    fn parse_url(&self, text: &str) -> Result<PassUrl, UrlError>;

    /// Appends what is asked for behind the server's address, as log lines have it.
    fn write_target(&self, exchange: &Exchange, path: &Path<'_>, out: &mut Vec<u8>);

    /// Appends what is asked for, as the usual key of a cache has it behind scheme and host.
    fn write_key(&self, exchange: &Exchange, path: &Path<'_>, out: &mut Vec<u8>) {
        self.write_target(exchange, path, out);
    }

    /// Whether a body may be sent whose length is not known when the head is written.
    fn takes_unknown_length(&self) -> bool;

    /// Appends the request's head. Its body follows in [`Origin::body_format`].
    ///
    /// # Errors
    /// [`Unwritable`] where the protocol has no place for such a request; the log says why.
    fn write_head(
        &self,
        exchange: &mut Exchange,
        question: &Question<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritable>;

    /// How the body of such a request is written.
    fn body_format(&self, framing: BodyFraming) -> BodyFormat;

    /// What a connection to a server carries.
    fn carries(&self) -> Carries {
        Carries::Messages
    }

    /// What takes off the records around an answer; `None`: an answer has none.
    /// `rooms` may keep one of an earlier request.
    fn record_layer(&self, _rooms: &mut Rooms) -> Option<Box<dyn RecordLayer>> {
        None
    }

    /// Takes what has come of the answer's head in `input`, while the request stands in the
    /// exchange's output.
    ///
    /// # Errors
    /// Why this answer cannot be one.
    fn read_head(
        &self,
        exchange: &Exchange,
        passing: &Passing,
        input: &mut Received,
        head: &mut Head,
        progress: &mut Progress,
    ) -> Result<ReceivedHead, Stop>;

    /// Changes the URL in `value` behind its first `kept` bytes: a `Location` or `Refresh`.
    fn rewrite_redirect(&self, _exchange: &Exchange, _kept: usize, _value: &mut Vec<u8>) {}

    /// Changes the value of a `Set-Cookie`.
    fn rewrite_cookie(&self, _exchange: &Exchange, _value: &mut Vec<u8>) {}

    /// Whether this server enters itself in `Via` of responses.
    fn names_via(&self) -> bool {
        false
    }

    /// Appends this server's entry for a message that was received in this version.
    fn write_via(&self, _received: Version, _out: &mut Vec<u8>) {}

    /// Whether a response of a server with this status is for the client. The page of this server
    /// answers in place of others, whatever `..._intercept_errors` says.
    fn answers_for(&self, _status: u16) -> bool {
        true
    }

    /// Whether the content type of a response is that of the request's path, since its head names
    /// none.
    fn is_typed_by_path(&self) -> bool {
        false
    }

    /// Whether trailer fields of a response are passed on.
    fn passes_trailers(&self) -> bool {
        false
    }

    /// Whether responses are sent with the server's name and the date as they come, also where
    /// they have none; otherwise those that are absent are added.
    fn is_proxied(&self) -> bool {
        false
    }
}

/// What a connection to a server carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    /// One request after another, as [`Origin::write_head`] and [`Origin::body_format`] write them.
    Messages,
    /// Streams of HTTP/2: what [`Origin::write_head`] appends is the header block of a request, and
    /// its body goes into frames.
    Streams,
    /// A tunnel: the connection is all that the request asks for, and nothing is written to it.
    Tunnel,
}

/// A request that the protocol cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwritable;

/// A request that is to be written.
pub(crate) struct Question<'a> {
    /// What the settings say of requests.
    pub(crate) passing: &'a Passing,
    /// Where it goes.
    pub(crate) path: Path<'a>,
    /// What keeps the answer, and may have wishes of its own.
    pub(crate) recorder: Option<&'a dyn Recorder>,
    pub(crate) framing: BodyFraming,
    /// Whether the server is spoken to by TLS.
    pub(crate) is_secure: bool,
}

/// Where a request goes, as far as its text depends on it.
pub(crate) struct Path<'a> {
    /// The path that the directive names; empty when none.
    pub(crate) written: &'a [u8],
    /// The part of the request's path that it takes the place of; `None`: of all of it.
    pub(crate) location: Option<&'a [u8]>,
}

/// How the end of the request's body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// No body.
    None,
    /// So many bytes.
    Length(u64),
    /// The length is not known yet.
    Unknown,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// As it is; its end is known from the head.
    Plain,
    /// In chunks (RFC 9112 section 7.1).
    Chunked,
    /// In FastCGI's records of the kind stdin.
    FastCgi,
}

impl BodyFormat {
    /// Appends a piece of a body.
    pub(crate) fn write_piece(self, piece: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(piece),
            Self::Chunked => write_chunk(piece, out),
            Self::FastCgi => turnpike_wire::fastcgi::write_stdin(piece, out),
        }
    }

    /// Appends the end of a body.
    pub(crate) fn write_end(self, out: &mut Vec<u8>) {
        match self {
            Self::Plain => {}
            Self::Chunked => end_chunks(out),
            Self::FastCgi => turnpike_wire::fastcgi::write_stdin_end(out),
        }
    }
}

/// Takes off the records in which a server sends its answer, below head and body.
pub(crate) trait RecordLayer {
    /// Takes the records off `bytes` from `from` on, which have just come; what is left are bytes
    /// of the answer. What they say besides goes to the log.
    ///
    /// # Errors
    /// What is wrong with the records, for the log.
    fn take_off(
        &mut self,
        exchange: &Exchange,
        bytes: &mut Vec<u8>,
        from: usize,
    ) -> Result<(), String>;

    /// Whether the last record has come.
    fn has_ended(&self) -> bool;

    /// Whether all bytes of the answer have come; records without any may follow.
    fn is_complete(&self) -> bool;

    /// What an end means that comes too early, for the log.
    fn early_end(&self) -> &'static str;

    /// Whether the connection can carry another request.
    fn is_reusable(&self) -> bool;

    /// Whether the server has said that it has not processed the request, so that it may be sent
    /// again whatever its method.
    fn is_unprocessed(&self) -> bool {
        false
    }

    /// Bytes of the present record that are to come: its sender is about to send them. 0 between
    /// two records, or where nobody knows.
    fn left_bytes(&self) -> usize {
        0
    }

    /// Keeps the memory for the exchange's next request; the answer is over.
    fn recycle(self: Box<Self>, _rooms: &mut Rooms) {}

    /// Behind how many bytes of the answer something was said for which it is refused, if its head
    /// is not whole before (`fastcgi_catch_stderr`).
    fn refused_at(&self) -> Option<usize> {
        None
    }

    /// The next head, of a layer that makes heads itself, and whether nothing follows it.
    fn next_head(&mut self) -> Option<(Head, bool)> {
        None
    }

    /// The trailer fields that have come, of a layer that makes them itself.
    fn take_trailers(&mut self) -> Option<Fields> {
        None
    }
}
