//! The request on its way to an upstream server: head, then a body from memory, from a file, or
//! from the client as it comes.

use std::io;
use std::os::fd::AsFd;

use turnpike_http::body::{Progress, RequestBody};
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_http::upstream::Upstream;
use turnpike_lane::waiting::leave_the_lane_to_others;
use turnpike_plan::temporary::TemporaryFile;
use turnpike_upstream::Connection;

use super::http2::StreamUpload;
use super::origin::BodyFormat;

/// Bytes of a body that are put behind the head; a longer one leaves from where it is. Both leave
/// in one call.
const COPIED_BODY_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a body that are put into records, or read from a file, at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// The same for a file where `client_body_buffer_size` is larger: a read that is worth its turn,
/// and does not hold the lane.
const FILE_PIECE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a body's file that one call sends: it takes well under a millisecond.
const SENT_FILE_BYTES_MAX: u64 = 512 * 1024;

/// What is still to be sent.
pub(crate) struct Upload {
    /// Bytes of the exchange's upstream output that were sent.
    sent: usize,
    source: Source,
    format: BodyFormat,
    /// Of HTTP/2: what goes into the output of the connection.
    stream: Option<StreamUpload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        /// Bytes of what was read before, which leave behind the head. They are kept until then,
        /// since another server may have to be asked instead.
        early: usize,
        /// Bytes of these that were sent, or put into the output.
        at: usize,
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
    pub(crate) fn of_body(body: &RequestBody, upstream: &mut Upstream, format: BodyFormat) -> Self {
        let source = if body.file().is_some() {
            Source::File(0)
        } else if format == BodyFormat::Plain && body.bytes().len() > COPIED_BODY_BYTES_MAX {
            // It leaves together with the head from where it is.
            Source::Memory(0)
        } else {
            Source::Memory(0).with_piece(body.bytes(), format, upstream.output_mut())
        };
        Self {
            source,
            format,
            ..Self::of_output()
        }
    }

    /// A request whose body is read while it is sent.
    pub(crate) fn of_client(
        body: &RequestBody,
        upstream: &mut Upstream,
        format: BodyFormat,
    ) -> Self {
        let early = body.bytes().len();
        let at = match format {
            BodyFormat::Plain => 0,
            format => {
                format.write_piece(body.bytes(), upstream.output_mut());
                early
            }
        };
        Self {
            source: Source::Client { early, at },
            format,
            ..Self::of_output()
        }
    }

    /// A request of which no more is sent: the server has stopped reading.
    pub(crate) fn given_up(upstream: &mut Upstream) -> Self {
        upstream.output_mut().clear();
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
        let slices = self.at_hand(exchange);
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        match connection.try_write(not_empty(&slices)) {
            Ok(sent) => {
                self.note_sent(exchange, sent);
                Ok(sent)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(UploadError::Upstream(error)),
        }
    }

    /// What can be sent as it stands: the rest of the output, and of a body in memory, or of what
    /// was read of one before, that nothing is put around.
    fn at_hand<'a>(&self, exchange: &'a Exchange) -> [io::IoSlice<'a>; 2] {
        let output = exchange.upstream.output().get(self.sent..);
        let body = match self.source {
            Source::Memory(at) if self.format == BodyFormat::Plain => {
                exchange.body.bytes().get(at..)
            }
            Source::Client { early, at } => exchange.body.bytes().get(at..early),
            _ => None,
        };
        [output, body].map(|bytes| io::IoSlice::new(bytes.unwrap_or_default()))
    }

    /// So many bytes of what was at hand were sent.
    fn note_sent(&mut self, exchange: &Exchange, sent: usize) {
        let output_left = exchange.upstream.output().len().saturating_sub(self.sent);
        let of_output = sent.min(output_left);
        self.sent += of_output;
        match &mut self.source {
            Source::Memory(at) if self.format == BodyFormat::Plain => {
                *at += sent - of_output;
                if *at >= exchange.body.bytes().len() {
                    self.source = Source::None;
                }
            }
            Source::Client { at, .. } => *at += sent - of_output,
            _ => {}
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
        let slices = self.at_hand(exchange);
        if slices.iter().any(|slice| !slice.is_empty()) {
            let sent = connection.write(not_empty(&slices), timeout_ms).await;
            self.note_sent(exchange, sent.map_err(UploadError::Upstream)?);
            return Ok(self.is_done(exchange));
        }
        match &mut self.source {
            Source::None | Source::Abandoned => return Ok(true),
            Source::Memory(_) => {
                let output = exchange.upstream.output_mut();
                output.clear();
                self.sent = 0;
                let bytes = exchange.body.bytes();
                self.source = self.source.with_piece(bytes, self.format, output);
            }
            Source::File(at) => {
                let sent = if may_send_file(exchange, self.format, connection) {
                    send_file(exchange, *at, connection, timeout_ms).await?
                } else {
                    None
                };
                if let Some(sent) = sent {
                    *at += sent as u64;
                    let size_bytes = exchange.body.file().map_or(0, TemporaryFile::size_bytes);
                    if *at >= size_bytes {
                        self.source = Source::None;
                    }
                    leave_the_lane_to_others(sent).await;
                } else {
                    let read = read_file(exchange, *at, self.format);
                    let read = read.map_err(|_| UploadError::Client(Verdict::Status(500)))?;
                    self.sent = 0;
                    *at += read as u64;
                    if read == 0 {
                        self.source = Source::None;
                    }
                }
            }
            Source::Client { early, at } => {
                exchange.body.bytes_mut().drain(..std::mem::take(early));
                *at = 0;
                let progress = client.read_body_piece(exchange).await;
                let progress = progress.map_err(UploadError::Client)?;
                self.sent = 0;
                let Exchange { body, upstream, .. } = exchange;
                frame(body, upstream, self.format, progress == Progress::Complete);
                if progress == Progress::Complete {
                    self.source = Source::None;
                }
            }
        }
        Ok(self.is_done(exchange))
    }
}

impl Source {
    /// Writes the next piece of a body in memory into `output`, and its end behind the last one.
    fn with_piece(self, bytes: &[u8], format: BodyFormat, output: &mut Vec<u8>) -> Self {
        let Self::Memory(at) = self else { return self };
        let end = bytes.len().min(at.saturating_add(PIECE_BYTES));
        format.write_piece(bytes.get(at..end).unwrap_or_default(), output);
        if end < bytes.len() {
            return Self::Memory(end);
        }
        format.write_end(output);
        Self::None
    }
}

/// The slices without an empty one at an end, so that one alone is sent as such.
fn not_empty<'a, 'b>(slices: &'b [io::IoSlice<'a>; 2]) -> &'b [io::IoSlice<'a>] {
    match slices {
        [first, second] if first.is_empty() => std::slice::from_ref(second),
        [first, second] if second.is_empty() => std::slice::from_ref(first),
        both => both.as_slice(),
    }
}

/// Whether the kernel sends the body's file (`sendfile`): nothing is put around it, nor encrypted.
fn may_send_file(exchange: &Exchange, format: BodyFormat, connection: &Connection) -> bool {
    let sendfile = exchange.location().settings.sendfile;
    sendfile && format == BodyFormat::Plain && connection.is_plain()
}

/// Sends a part of the body's file, which has more; returns how much that was. `None`: the kernel
/// cannot take it from the file, and a read says why.
async fn send_file(
    exchange: &Exchange,
    at: u64,
    connection: &Connection,
    timeout_ms: u64,
) -> Result<Option<usize>, UploadError> {
    let Some(file) = exchange.body.file() else {
        return Ok(Some(0));
    };
    if at >= file.size_bytes() {
        return Ok(Some(0));
    }
    let settings = &exchange.location().settings;
    let left = (file.size_bytes() - at).min(SENT_FILE_BYTES_MAX);
    let wanted = match settings.sendfile_chunk_bytes_max {
        0 => left,
        most => left.min(most),
    };
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let file = file.file().as_fd();
    match connection.send_file(file, at, wanted, timeout_ms).await {
        // It is shorter than it was.
        Ok(0) => Err(UploadError::Client(Verdict::Status(500))),
        Err(error) if is_of_file(&error) => Ok(None),
        sent => sent.map(Some).map_err(UploadError::Upstream),
    }
}

/// Whether an error of sendfile(2) is about the file, not the socket.
fn is_of_file(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    matches!(
        errno,
        Some(libc::EIO | libc::EINVAL | libc::EOVERFLOW | libc::ENOSYS)
    )
}

/// Reads the next piece of the body's file into the output; returns its length, which is 0 at the
/// end.
fn read_file(exchange: &mut Exchange, at: u64, format: BodyFormat) -> io::Result<usize> {
    let buffer_bytes = exchange.location().settings.client_body_buffer_bytes;
    let mut output = std::mem::take(exchange.upstream.output_mut());
    output.clear();
    let file = exchange.body.file();
    let read = |bytes_max: usize, piece: &mut Vec<u8>| {
        file.map_or(Ok(0), |file| file.read(at, bytes_max, piece))
    };
    let read = if format == BodyFormat::Plain {
        // Nothing is put around it: it needs no copy.
        let bytes_max = buffer_bytes.clamp(PIECE_BYTES, FILE_PIECE_BYTES_MAX);
        read(bytes_max, &mut output)
    } else {
        let mut piece = exchange.lane.take_scratch();
        let read = read(PIECE_BYTES, &mut piece);
        match &read {
            Ok(0) => format.write_end(&mut output),
            _ => format.write_piece(&piece, &mut output),
        }
        exchange.lane.keep_scratch(piece);
        read
    };
    *exchange.upstream.output_mut() = output;
    read
}

/// Moves what was read of the client's body into the output.
fn frame(body: &mut RequestBody, upstream: &mut Upstream, format: BodyFormat, last: bool) {
    let mut piece = std::mem::take(body.bytes_mut());
    let output = upstream.output_mut();
    output.clear();
    match format {
        // Nothing is put around it: it needs no copy.
        BodyFormat::Plain => std::mem::swap(output, &mut piece),
        format => {
            format.write_piece(&piece, output);
            if last {
                format.write_end(output);
            }
        }
    }
    piece.clear();
    *body.bytes_mut() = piece;
}
