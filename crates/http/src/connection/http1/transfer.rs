//! Puts a response on a socket, as far as the socket takes it.
//!
//! A response is a row of segments: the head, then bytes, slices of files, or pieces that are made
//! on the way. Nothing here waits: where the socket is full, the caller waits and calls again.

use std::io::{self, IoSlice};
use std::rc::Rc;

use turnpike_lane::files::{self, FileHandle};
use turnpike_lane::log::Level;
use turnpike_lane::sys::file;
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_lane::sys::socket::More;
use turnpike_lane::transport::{FileSent, SEALED_FILE_BYTES_MAX, Transport};

use crate::account::Account;
use crate::exchange::Exchange;
use crate::h1::response::{write_chunk_head, write_head, write_last_chunk};
use crate::pieces;
use crate::response::{Body, Parts, Response};
use crate::segments::{self, Segment};
use crate::sending::Sending;
use crate::settings::location::LocationSettings;

/// Byte segments that go into one system call: head, part heads, small contents.
const GATHER_MAX: usize = 8;

/// Bytes of a file that are read into memory and sent with the head, rather than by a call of
/// their own: copying them costs less than a second packet.
const INLINE_FILE_BYTES_MAX: u64 = 16 * 1024;

/// Bytes of a body that are copied behind the head: a plain send(2) of both costs less than a
/// gathering one.
const COPIED_BODY_BYTES_MAX: usize = 4 * 1024;

const _: () = assert!(COPIED_BODY_BYTES_MAX as u64 <= INLINE_FILE_BYTES_MAX);

/// Where in its segments a response is.
#[derive(Default, Debug)]
pub(in crate::connection) struct Transfer {
    segment: usize,
    at: u64,
    /// Whether pieces are framed as chunks.
    chunked: bool,
    /// Whether the last piece was made.
    pub(super) ended: bool,
    /// Whether the body stands behind the head in the output.
    copied: bool,
    /// Whether the connection is closed right behind the last byte.
    closing: bool,
    /// The place in the file of the bytes in the response's room that a thread has read.
    read_from: Option<u64>,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// All segments are sent.
    All,
    /// The socket is full.
    Blocked,
    /// The budget is used up.
    Slice,
    /// The next piece of a stream has to be made.
    WantsPiece,
    /// The next part of a file is not in memory: [`Transfer::read_file`].
    WantsFile,
}

impl Transfer {
    /// Puts the head, and what is at hand of the body, where it can be sent. `None`: the body is
    /// not what was announced, or its first piece cannot be had. The first is logged here, the
    /// second by the body itself.
    pub(super) fn begin(exchange: &mut Exchange) -> Option<Transfer> {
        let is_plain = exchange.requester.tls().is_none();
        if !inline_small_file(&mut exchange.response, is_plain) {
            log_send_error(exchange, &io::ErrorKind::UnexpectedEof.into());
            return None;
        }
        let chunked = write_head(exchange);
        let ready = pieces::ready(exchange);
        let mut transfer = Transfer::new(exchange, chunked);
        if let Some(more) = ready {
            transfer.frame(exchange, more.ok()?);
        }
        Some(transfer)
    }

    /// Whether pieces of the body are still to be made.
    pub(super) fn wants_pieces(&self, exchange: &Exchange) -> bool {
        let response = &exchange.response;
        !self.ended && !response.is_head_only() && matches!(response.body(), Body::Stream(_))
    }

    /// Whether pieces of the body are framed as chunks.
    pub(super) fn is_chunked(&self) -> bool {
        self.chunked
    }

    /// Begins at the head, which stands in the exchange's output.
    fn new(exchange: &mut Exchange, chunked: bool) -> Self {
        let mut output = std::mem::take(exchange.sending.output());
        let mut copied = false;
        let response = &exchange.response;
        if chunked && matches!(response.body(), Body::Text) && !response.is_head_only() {
            // The text becomes one chunk where it stands, with the end of the body behind it.
            let mut text = std::mem::take(exchange.response.received_mut());
            let length = text.len();
            frame_chunk(exchange, &mut output, length, text.room(), false);
            *exchange.response.received_mut() = text;
        }
        if let Segment::Bytes(body) = segment(exchange, 1)
            && body.len() <= COPIED_BODY_BYTES_MAX
            && matches!(segment(exchange, 2), Segment::End)
        {
            output.extend_from_slice(body);
            copied = true;
        }
        *exchange.sending.output() = output;
        Self {
            chunked,
            copied,
            ..Self::default()
        }
    }

    /// Sends what the socket takes, at most about `budget` bytes.
    ///
    /// # Errors
    /// What the socket says; `UnexpectedEof` when a file turned out shorter than announced, in
    /// which case the connection must be closed, since the promised length cannot be kept.
    pub(super) fn send(
        &mut self,
        exchange: &mut Exchange,
        transport: &Transport,
        budget: u64,
    ) -> io::Result<Sent> {
        if self.copied {
            let Exchange {
                sending, account, ..
            } = exchange;
            return self.send_output(sending, account, transport, budget);
        }
        let mut left = budget;
        loop {
            let sent = match segment(exchange, self.segment) {
                Segment::End => return flushed(transport, Sent::All),
                Segment::Piece if self.ended => return flushed(transport, Sent::All),
                Segment::Piece => return flushed(transport, Sent::WantsPiece),
                Segment::Bytes(bytes) if self.at >= bytes.len() as u64 => {
                    self.next_segment();
                    continue;
                }
                Segment::File { length, .. } if self.at >= length => {
                    self.next_segment();
                    continue;
                }
                _ if left == 0 => return Ok(Sent::Slice),
                Segment::Bytes(_) => self.gather(exchange, transport, left),
                Segment::File { offset, length } => {
                    let count = (length - self.at).min(left);
                    let settings = &exchange.plan.location(exchange.walk.location()).settings;
                    let response = &mut exchange.response;
                    match self.send_file(response, settings, transport, offset + self.at, count) {
                        Ok(FileSent::Bytes(bytes)) => Ok(bytes as u64),
                        Ok(FileSent::MustBeRead) => return Ok(Sent::WantsFile),
                        Err(error) => Err(error),
                    }
                }
            };
            match sent {
                Ok(bytes) => {
                    exchange.account.sent(bytes);
                    left = left.saturating_sub(bytes);
                    self.advance(exchange, bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Sent::Blocked);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a response that stands whole in the output.
    fn send_output(
        &mut self,
        sending: &Sending,
        account: &mut Account,
        transport: &Transport,
        budget: u64,
    ) -> io::Result<Sent> {
        let more = if self.closing { More::Yes } else { More::No };
        let mut left = usize::try_from(budget).unwrap_or(usize::MAX);
        loop {
            let rest = sending
                .pending()
                .get(self.at as usize..)
                .unwrap_or_default();
            if rest.is_empty() {
                if simulation::is_faulty(Fault::AnswerTwice) {
                    self.at = 0;
                    continue;
                }
                return flushed(transport, Sent::All);
            }
            if left == 0 {
                return Ok(Sent::Slice);
            }
            let slice = IoSlice::new(&rest[..rest.len().min(left)]);
            match transport.try_write(&[slice], more) {
                Ok(sent) => {
                    self.at += sent as u64;
                    account.sent(sent as u64);
                    left -= sent;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Sent::Blocked);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The connection is closed right behind the last byte: the kernel has to wait for that, so
    /// that the end of the data and the FIN leave in one segment. It saves a segment and its
    /// acknowledgement for every short connection.
    pub(super) fn closes(&mut self) {
        self.closing = true;
    }

    /// Whether another piece is to be made before anything is sent, since it may not come: the body
    /// is put together of parts, and little of it is made.
    pub(super) fn is_postponed(&self, exchange: &Exchange) -> bool {
        let Body::Stream(body) = exchange.response.body() else {
            return false;
        };
        let bytes_min = exchange.location().settings.postpone_output_bytes;
        (self.segment, self.at) == (0, 0)
            && self.wants_pieces(exchange)
            && body.is_of_parts()
            && exchange.response.text().is_empty()
            && exchange.sending.pending().len() < bytes_min
    }

    /// A piece was made: it is sent next, behind a head of which nothing is sent. `more`: it is not
    /// the last one.
    pub(super) fn piece_ready(&mut self, exchange: &mut Exchange, more: bool) {
        if (self.segment, self.at) != (0, 0) {
            exchange.sending.output().clear();
            self.segment = 0;
            self.at = 0;
        }
        self.frame(exchange, more);
    }

    /// Puts the piece that was made behind the output: a small one into it, a large one stays where
    /// it is.
    fn frame(&mut self, exchange: &mut Exchange, more: bool) {
        let mut out = std::mem::take(exchange.sending.output());
        let mut piece = exchange.response.take_text();
        if self.chunked {
            let length = piece.len();
            frame_chunk(exchange, &mut out, length, &mut piece, more);
        }
        if piece.len() <= COPIED_BODY_BYTES_MAX {
            out.append(&mut piece);
        }
        exchange.response.set_text(piece);
        *exchange.sending.output() = out;
        self.ended = !more;
    }

    /// Sends a slice of a file: what a thread has read of it, by sendfile(2), or through a buffer
    /// where that is off.
    fn send_file(
        &mut self,
        response: &mut Response,
        settings: &LocationSettings,
        transport: &Transport,
        offset: u64,
        count: u64,
    ) -> io::Result<FileSent> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let read = self.read_from.and_then(|from| offset.checked_sub(from));
        let read = read.and_then(|at| response.text().get(at as usize..));
        if let Some(bytes) = read.filter(|bytes| !bytes.is_empty()) {
            let bytes = &bytes[..bytes.len().min(count)];
            let sent = transport.try_write(&[IoSlice::new(bytes)], More::No)?;
            return Ok(FileSent::Bytes(sent));
        }
        self.read_from = None;
        let sent = send_file(response, settings, transport, offset, count)?;
        match sent {
            FileSent::Bytes(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => Ok(sent),
        }
    }

    /// Reads the next part of a file on a thread, to be sent next.
    ///
    /// # Errors
    /// The kernel's; `UnexpectedEof` if the file turned out shorter than announced.
    pub(super) async fn read_file(&mut self, exchange: &mut Exchange) -> io::Result<()> {
        let Segment::File { offset, length } = segment(exchange, self.segment) else {
            return Ok(());
        };
        let from = offset + self.at;
        let left = usize::try_from(length - self.at).unwrap_or(usize::MAX);
        let lane = Rc::clone(&exchange.lane);
        let Some((body, room)) = exchange.response.file_and_room() else {
            return Ok(());
        };
        let descriptor = body.file.descriptor().ok_or(io::ErrorKind::NotFound)?;
        lane.counters.file_waits.add();
        let count = left.min(SEALED_FILE_BYTES_MAX);
        match files::read_on_thread(descriptor, room, count, from).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {
                self.read_from = Some(from);
                Ok(())
            }
        }
    }

    fn next_segment(&mut self) {
        self.segment += 1;
        self.at = 0;
    }

    fn advance(&mut self, exchange: &Exchange, mut bytes: u64) {
        while bytes > 0 {
            let length = match segment(exchange, self.segment) {
                Segment::Bytes(segment) => segment.len() as u64,
                Segment::File { length, .. } => length,
                Segment::Piece | Segment::End => return,
            };
            let taken = bytes.min(length - self.at);
            self.at += taken;
            bytes -= taken;
            if self.at == length {
                self.next_segment();
            }
        }
    }

    /// Sends the byte segments that follow one another in one call.
    fn gather(&self, exchange: &Exchange, transport: &Transport, left: u64) -> io::Result<u64> {
        let mut slices = [IoSlice::new(&[]); GATHER_MAX];
        let mut count = 0;
        let mut total = 0;
        let mut more = if self.closing { More::Yes } else { More::No };
        for number in self.segment.. {
            if count == GATHER_MAX || total == left {
                break;
            }
            match segment(exchange, number) {
                Segment::Bytes(bytes) => {
                    let is_first = number == self.segment;
                    let from = if is_first { self.at as usize } else { 0 };
                    let bytes = bytes.get(from..).unwrap_or_default();
                    let room = usize::try_from(left - total).unwrap_or(usize::MAX);
                    let bytes = &bytes[..bytes.len().min(room)];
                    if !bytes.is_empty() {
                        total += bytes.len() as u64;
                        slices[count] = IoSlice::new(bytes);
                        count += 1;
                    }
                }
                Segment::File { .. } => {
                    more = More::Yes;
                    break;
                }
                Segment::Piece | Segment::End => break,
            }
        }
        let sent = transport.try_write(&slices[..count], more)?;
        Ok(sent as u64)
    }
}

/// Makes a chunk of a piece of `length` bytes where it stands, at the end of `piece`: what comes
/// before it is appended to `before`, what comes behind it to the piece, with the end of the body
/// where no more follows.
fn frame_chunk(
    exchange: &Exchange,
    before: &mut Vec<u8>,
    length: usize,
    piece: &mut Vec<u8>,
    more: bool,
) {
    if length > 0 {
        write_chunk_head(length, before);
        piece.extend_from_slice(b"\r\n");
    }
    if !more {
        write_last_chunk(exchange, piece);
    }
}

/// What came of a call once all that a TLS session keeps has left; blocked before that.
fn flushed(transport: &Transport, sent: Sent) -> io::Result<Sent> {
    match transport.flush() {
        Ok(()) => Ok(sent),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Sent::Blocked),
        Err(error) => Err(error),
    }
}

/// Sends a slice of a file: by sendfile(2), or through a buffer where that is off.
fn send_file(
    response: &mut Response,
    settings: &LocationSettings,
    transport: &Transport,
    offset: u64,
    count: usize,
) -> io::Result<FileSent> {
    let Some((body, buffer)) = response.file_and_room() else {
        return Ok(FileSent::Bytes(0));
    };
    let descriptor = body.file.descriptor().ok_or(io::ErrorKind::NotFound)?;
    // What is encrypted passes through a buffer in any case.
    if settings.sendfile || !transport.is_plain() {
        let count = match usize::try_from(settings.sendfile_chunk_bytes_max) {
            Ok(chunk_max) if chunk_max > 0 => count.min(chunk_max),
            _ => count,
        };
        return transport.try_send_file(descriptor, offset, count, buffer);
    }
    let count = count.min(settings.output_buffer_bytes.max(1));
    buffer.resize(count, 0);
    let sent = match file::read_at(descriptor, buffer, offset)? {
        0 => 0,
        read => transport.try_write(&[IoSlice::new(&buffer[..read])], More::No)?,
    };
    Ok(FileSent::Bytes(sent))
}

/// Reads a small file into memory, so that head and content leave in one call. One that would have
/// to be waited for is left to be sent behind the head. `false`: the file is not as long as it was.
fn inline_small_file(response: &mut Response, is_plain: bool) -> bool {
    if response.is_head_only() {
        return true;
    }
    let Some((body, text)) = response.file_and_room() else {
        return true;
    };
    let Parts::One { offset, length } = body.parts else {
        return true;
    };
    if length > INLINE_FILE_BYTES_MAX || body.file.content().is_some() {
        return true;
    }
    let Some(descriptor) = body.file.descriptor() else {
        return false;
    };
    text.resize(length as usize, 0);
    let read = if is_plain {
        // sendfile(2) would wait in its place.
        file::fill_at(descriptor, text, offset).map(Some)
    } else {
        files::read_at_once(descriptor, text, offset)
    };
    match read {
        Ok(Some(read)) if read == text.len() => response.set_body(Body::Text),
        Ok(None) => text.clear(),
        // The end of the file, or of what is in memory.
        Ok(Some(_)) if !is_plain && is_whole(&body.file, offset + length) => text.clear(),
        _ => return false,
    }
    true
}

/// Whether an open file still has so many bytes.
fn is_whole(file: &FileHandle, bytes: u64) -> bool {
    let metadata = file.descriptor().map(file::metadata);
    metadata.is_some_and(|metadata| metadata.is_ok_and(|it| it.size_bytes >= bytes))
}

/// The segment of that number: 0 is the output (the head, or a framed piece), the body follows.
fn segment(exchange: &Exchange, number: usize) -> Segment<'_> {
    let response = &exchange.response;
    match number.checked_sub(1) {
        None => Segment::Bytes(exchange.sending.pending()),
        Some(_) if response.is_head_only() => Segment::End,
        Some(0) if matches!(response.body(), Body::Stream(_)) => Segment::Bytes(response.text()),
        Some(number) => segments::of_body(response.body(), response.text(), number),
    }
}

/// A client that went away is no error of ours, unless the kernel says something unusual.
pub(super) fn log_send_error(exchange: &Exchange, error: &io::Error) {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => exchange.log(
            Level::Alert,
            format_args!("file was truncated while it was sent to the client"),
        ),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            exchange.log(Level::Info, format_args!("send() failed ({error})"));
        }
        _ => exchange.log(Level::Alert, format_args!("send() failed ({error})")),
    }
}
