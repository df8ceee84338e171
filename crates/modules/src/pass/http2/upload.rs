//! The body of a request on a stream: it goes as far as the windows let it, and no further into
//! memory than the socket takes it.

use std::io;
use std::time::Duration;

use turnpike_http::body::Progress;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_upstream::Connection;
use turnpike_wire::h2::hpack::Indexing;
use turnpike_wire::h2::{ClientConnection, StreamId};
use turnpike_wire::message::Known;

use crate::pass::http2_connection::{self, Shared};
use crate::pass::origin::BodyFraming;
use crate::pass::upload::UploadError;

/// Bytes of a body that are put into frames at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// What is still to be sent of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamBody {
    /// Nothing.
    None,
    /// What the exchange holds in memory, from this byte on.
    Memory { at: usize },
    /// This text, from that byte on.
    Text { text: Vec<u8>, at: usize },
    /// The body's file, from this byte on.
    File { at: u64 },
    /// What was read of the client, from this byte on, and then what is still to come. It is kept
    /// until it was sent, since another server may have to be asked instead.
    Client { at: usize, is_whole: bool },
}

/// Whether trailer fields of a request are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trailers {
    /// The fields whose names mean nothing to servers: others could change the meaning of a
    /// request after its head was checked (RFC 9110 section 6.5.1).
    Pass,
    Drop,
}

impl Trailers {
    /// The fields that are sent.
    fn of(self, exchange: &Exchange) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = exchange.body.trailers().iter();
        fields.filter(move |(name, _)| self == Self::Pass && Known::of(name) == Known::Other)
    }

    fn are_there(self, exchange: &Exchange) -> bool {
        self.of(exchange).next().is_some()
    }
}

impl StreamBody {
    /// The body of a request: `own_body`, where there is one, or what the client has sent. Of
    /// one that is `unbuffered` more may be to come.
    pub(crate) fn of(
        exchange: &Exchange,
        framing: BodyFraming,
        own_body: Option<Vec<u8>>,
        unbuffered: bool,
        trailers: Trailers,
    ) -> Self {
        let is_empty = matches!(framing, BodyFraming::None | BodyFraming::Length(0));
        if is_empty && !(own_body.is_none() && trailers.are_there(exchange)) {
            return Self::None;
        }
        match own_body {
            Some(text) => Self::Text { text, at: 0 },
            None if unbuffered => Self::Client {
                at: 0,
                is_whole: false,
            },
            None if exchange.body.file().is_some() => Self::File { at: 0 },
            None => Self::Memory { at: 0 },
        }
    }
}

/// The request on its stream.
pub(crate) struct StreamUpload {
    http2: Shared,
    stream: StreamId,
    body: StreamBody,
    trailers: Trailers,
    /// When the windows must have let something go, in the lane's monotonic milliseconds; `None`
    /// while they do.
    window_deadline_ms: Option<u64>,
}

impl StreamUpload {
    /// A stream on which the head was sent. What is at hand of the body follows at once.
    pub(crate) fn new(
        exchange: &Exchange,
        http2: Shared,
        stream: StreamId,
        body: StreamBody,
        trailers: Trailers,
    ) -> Self {
        let trailers = match body {
            // They are behind the client's body, which this one replaces.
            StreamBody::Text { .. } => Trailers::Drop,
            _ => trailers,
        };
        let mut upload = Self {
            http2,
            stream,
            body,
            trailers,
            window_deadline_ms: None,
        };
        upload.put(exchange);
        upload
    }

    /// Whether all of it was sent, and what the connection has to say besides.
    pub(crate) fn is_done(&self) -> bool {
        self.body == StreamBody::None && self.http2.borrow_mut().output().is_empty()
    }

    /// Whether nothing more of the body is to be sent: the server may want no more of it.
    pub(crate) fn is_over(&self) -> bool {
        let is_unwanted = !self.http2.borrow().may_send(self.stream);
        (self.body == StreamBody::None || is_unwanted)
            && self.http2.borrow_mut().output().is_empty()
    }

    /// Sends what the socket takes at once; returns how much that was.
    pub(crate) fn try_send(&self, connection: &Connection) -> Result<usize, UploadError> {
        match http2_connection::try_write(&self.http2, connection) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent.map_err(UploadError::Upstream),
        }
    }

    /// Sends on until a wait is over. `true`: all of it was sent. Nothing is lost where it is
    /// dropped before its end.
    pub(crate) async fn step(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        connection: &Connection,
        timeout_ms: u64,
    ) -> Result<bool, UploadError> {
        let has_output = !self.http2.borrow_mut().output().is_empty();
        if has_output {
            let sent = http2_connection::write(&self.http2, connection, timeout_ms).await;
            sent.map_err(UploadError::Upstream)?;
            return Ok(self.is_done());
        }
        if self.awaits_client(exchange) {
            exchange.body.bytes_mut().clear();
            self.body = StreamBody::Client {
                at: 0,
                is_whole: false,
            };
            let progress = client.read_body_piece(exchange).await;
            let progress = progress.map_err(UploadError::Client)?;
            self.body = StreamBody::Client {
                at: 0,
                is_whole: progress == Progress::Complete,
            };
        }
        match self.body {
            StreamBody::File { at } => self.put_file(exchange, at)?,
            _ => self.put(exchange),
        }
        let is_blocked = self.http2.borrow_mut().output().is_empty() && !self.is_done();
        if is_blocked && !self.awaits_client(exchange) {
            return Err(self.window_closed(exchange, timeout_ms).await);
        }
        self.window_deadline_ms = None;
        Ok(self.is_done())
    }

    /// Waits while the windows are closed: whoever reads drops this when one may have opened. Other
    /// frames of the server give it no more time.
    async fn window_closed(&mut self, exchange: &Exchange, timeout_ms: u64) -> UploadError {
        if timeout_ms == 0 {
            return std::future::pending().await;
        }
        let now_ms = exchange.lane.clock.now_ms();
        let deadline_ms = *self.window_deadline_ms.get_or_insert(now_ms + timeout_ms);
        let left_ms = deadline_ms.saturating_sub(now_ms);
        tokio::time::sleep(Duration::from_millis(left_ms)).await;
        UploadError::Upstream(io::ErrorKind::TimedOut.into())
    }

    /// Whether all that was read of the client was sent, and more is to come.
    fn awaits_client(&self, exchange: &Exchange) -> bool {
        match self.body {
            StreamBody::Client { at, is_whole } => !is_whole && at >= exchange.body.bytes().len(),
            _ => false,
        }
    }

    /// Puts what is at hand into frames, as far as the windows let it.
    fn put(&mut self, exchange: &Exchange) {
        let (bytes, at, is_whole) = match &mut self.body {
            StreamBody::None | StreamBody::File { .. } => return,
            StreamBody::Memory { at } => (exchange.body.bytes(), at, true),
            StreamBody::Text { text, at } => (text.as_slice(), at, true),
            StreamBody::Client { at, is_whole } => (exchange.body.bytes(), at, *is_whole),
        };
        let end = bytes.len().min(at.saturating_add(PIECE_BYTES));
        let piece = bytes.get(*at..end).unwrap_or_default();
        let ends = is_whole && end == bytes.len();
        let mut http2 = self.http2.borrow_mut();
        let trailers = self.trailers;
        let has_trailers = ends && trailers.are_there(exchange);
        *at += http2.send_data(self.stream, piece, ends && !has_trailers);
        if has_trailers && *at == end {
            send_trailers(exchange, trailers, &mut http2, self.stream);
        }
        if ends && !http2.may_send(self.stream) {
            self.body = StreamBody::None;
        }
    }

    /// Reads as much of the body's file as the windows let go, and puts it into frames.
    fn put_file(&mut self, exchange: &Exchange, at: u64) -> Result<(), UploadError> {
        let mut http2 = self.http2.borrow_mut();
        let wanted = http2.window(self.stream).min(PIECE_BYTES);
        let length = exchange.body.length();
        if wanted == 0 && at < length {
            return Ok(());
        }
        let mut piece = exchange.lane.take_scratch();
        let file = exchange.body.file();
        let read = file.map_or(Ok(0), |file| file.read(at, wanted, &mut piece));
        if let Ok(read) = read {
            let at = at + read as u64;
            let ends = at >= length;
            let has_trailers = ends && self.trailers.are_there(exchange);
            http2.send_data(self.stream, &piece, ends && !has_trailers);
            if has_trailers {
                send_trailers(exchange, self.trailers, &mut http2, self.stream);
            }
            self.body = if ends {
                StreamBody::None
            } else {
                StreamBody::File { at }
            };
        }
        exchange.lane.keep_scratch(piece);
        // A file that is shorter than it was is none of the server's business.
        match read {
            Ok(0) if at < length => Err(UploadError::Client(Verdict::Status(500))),
            Ok(_) => Ok(()),
            Err(_) => Err(UploadError::Client(Verdict::Status(500))),
        }
    }
}

fn send_trailers(
    exchange: &Exchange,
    trailers: Trailers,
    http2: &mut ClientConnection,
    stream: StreamId,
) {
    http2.send_trailers(stream, &mut Vec::new(), |encoder, block| {
        for (name, value) in trailers.of(exchange) {
            encoder.field(name, value, Indexing::No, block);
        }
    });
}
