//! The request on its way to an upstream server: head, then a body from memory, from a file, or
//! from the client as it comes.

use std::io;

use turnpike_http::body::Progress;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_upstream::Connection;

use super::http2::StreamUpload;
use super::origin::BodyFormat;

/// Bytes of a body that are put behind the head, so that both leave in one call.
const COPIED_BODY_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a body that are read from a file, or put into records, at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// What is still to be sent.
pub(crate) struct Upload {
    /// Bytes of the exchange's upstream output that were sent.
    sent: usize,
    source: Source,
    format: BodyFormat,
    /// Of HTTP/2: what goes into the output of the connection.
    stream: Option<StreamUpload>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// Nothing beyond the output.
    None,
    /// The body in memory, from this byte on.
    Memory(usize),
    /// The body's file, from this byte on.
    File(u64),
    /// Nothing more, though there would be more.
    Abandoned,
    /// The client, as it comes.
    Client {
        /// Bytes of what was read before, which stand behind the head in the output. They are kept
        /// until that was sent, since another server may have to be asked instead.
        early: usize,
    },
}

/// Why a request was not sent.
pub(crate) enum UploadError {
    /// The server's connection failed.
    Upstream(io::Error),
    /// The client's body cannot be had: the verdict that answers it.
    Client(Verdict),
}

impl Upload {
    /// A request without a body, or with one that stands in the output.
    pub(crate) fn of_output() -> Self {
        Self {
            sent: 0,
            source: Source::None,
            format: BodyFormat::Plain,
            stream: None,
        }
    }

    /// A request on a stream of HTTP/2.
    pub(crate) fn of_stream(stream: StreamUpload) -> Self {
        Self {
            stream: Some(stream),
            ..Self::of_output()
        }
    }

    /// A request whose body the exchange holds.
    pub(crate) fn of_body(exchange: &mut Exchange, format: BodyFormat) -> Self {
        let body = &exchange.body;
        let source = if body.file().is_some() {
            Source::File(0)
        } else if body.bytes().len() <= COPIED_BODY_BYTES_MAX {
            let output = exchange.upstream.output_mut();
            format.write_piece(body.bytes(), output);
            format.write_end(output);
            Source::None
        } else {
            Source::Memory(0)
        };
        Self {
            source,
            format,
            ..Self::of_output()
        }
    }

    /// A request whose body is read while it is sent.
    pub(crate) fn of_client(exchange: &mut Exchange, format: BodyFormat) -> Self {
        let early = exchange.body.bytes().len();
        let output = exchange.upstream.output_mut();
        format.write_piece(exchange.body.bytes(), output);
        Self {
            source: Source::Client { early },
            format,
            ..Self::of_output()
        }
    }

    /// A request of which no more is sent: the server has stopped reading.
    pub(crate) fn given_up(exchange: &mut Exchange) -> Self {
        exchange.upstream.output_mut().clear();
        Self {
            source: Source::Abandoned,
            ..Self::of_output()
        }
    }

    /// Whether nothing more is to be sent.
    pub(crate) fn is_over(&self, exchange: &Exchange) -> bool {
        match &self.stream {
            Some(stream) => stream.is_over(),
            None => self.source == Source::Abandoned || self.is_done(exchange),
        }
    }

    /// Whether all of it was sent.
    pub(crate) fn is_done(&self, exchange: &Exchange) -> bool {
        match &self.stream {
            Some(stream) => stream.is_done(),
            None => self.source == Source::None && self.sent >= exchange.upstream.output().len(),
        }
    }

    /// Sends what the socket takes of the output at once; returns how much that was.
    pub(crate) fn try_send(
        &mut self,
        exchange: &Exchange,
        connection: &Connection,
    ) -> Result<usize, UploadError> {
        if let Some(stream) = &self.stream {
            return stream.try_send(connection);
        }
        let rest = exchange.upstream.output().get(self.sent..);
        let rest = rest.unwrap_or_default();
        if rest.is_empty() {
            return Ok(0);
        }
        match connection.try_write(&[io::IoSlice::new(rest)]) {
            Ok(sent) => {
                self.sent += sent;
                Ok(sent)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(UploadError::Upstream(error)),
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
        if let Some(stream) = &mut self.stream {
            return stream.step(exchange, client, connection, timeout_ms).await;
        }
        if self.sent < exchange.upstream.output().len() {
            let rest = &exchange.upstream.output()[self.sent..];
            let slices = [io::IoSlice::new(rest)];
            let sent = connection.write(&slices, timeout_ms).await;
            self.sent += sent.map_err(UploadError::Upstream)?;
            return Ok(self.is_done(exchange));
        }
        match &mut self.source {
            Source::None | Source::Abandoned => return Ok(true),
            Source::Memory(at) if self.format == BodyFormat::Plain => {
                let rest = exchange.body.bytes().get(*at..).unwrap_or_default();
                let slices = [io::IoSlice::new(rest)];
                let sent = connection.write(&slices, timeout_ms).await;
                *at += sent.map_err(UploadError::Upstream)?;
                if *at >= exchange.body.bytes().len() {
                    self.source = Source::None;
                }
            }
            Source::Memory(at) => {
                let bytes = exchange.body.bytes();
                let end = bytes.len().min(at.saturating_add(PIECE_BYTES));
                let piece = bytes.get(*at..end).unwrap_or_default();
                *at = end;
                let last = end >= bytes.len();
                let output = exchange.upstream.output_mut();
                output.clear();
                self.sent = 0;
                self.format.write_piece(piece, output);
                if last {
                    self.format.write_end(output);
                    self.source = Source::None;
                }
            }
            Source::File(at) => {
                let read = read_file(exchange, *at, self.format);
                let read = read.map_err(|_| UploadError::Client(Verdict::Status(500)))?;
                self.sent = 0;
                *at += read as u64;
                if read == 0 {
                    self.source = Source::None;
                }
            }
            Source::Client { early } => {
                exchange.body.bytes_mut().drain(..std::mem::take(early));
                let progress = client.read_body_piece(exchange).await;
                let progress = progress.map_err(UploadError::Client)?;
                self.sent = 0;
                frame(exchange, self.format, progress == Progress::Complete);
                if progress == Progress::Complete {
                    self.source = Source::None;
                }
            }
        }
        Ok(self.is_done(exchange))
    }
}

/// Reads the next piece of the body's file into the output; returns its length, which is 0 at the
/// end.
fn read_file(exchange: &mut Exchange, at: u64, format: BodyFormat) -> io::Result<usize> {
    let mut piece = exchange.lane.take_scratch();
    let file = exchange.body.file();
    let read = file.map_or(Ok(0), |file| file.read(at, PIECE_BYTES, &mut piece));
    let output = exchange.upstream.output_mut();
    output.clear();
    match (&read, format) {
        (Ok(0), format) => format.write_end(output),
        // Nothing is put around it: it needs no copy.
        (_, BodyFormat::Plain) => std::mem::swap(output, &mut piece),
        (_, format) => format.write_piece(&piece, output),
    }
    exchange.lane.keep_scratch(piece);
    read
}

/// Moves what was read of the client's body into the output.
fn frame(exchange: &mut Exchange, format: BodyFormat, last: bool) {
    let piece = std::mem::take(exchange.body.bytes_mut());
    let output = exchange.upstream.output_mut();
    output.clear();
    format.write_piece(&piece, output);
    if last {
        format.write_end(output);
    }
    *exchange.body.bytes_mut() = piece;
    exchange.body.bytes_mut().clear();
}
