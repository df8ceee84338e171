//! Bodies that are at hand, as rows of segments: what is sent of them, or handed to a filter.
//!
//! Nothing here sends or waits.

use std::io;
use std::os::fd::BorrowedFd;

use turnpike_lane::files;
use turnpike_lane::log::{Errno, Level};

use crate::client::Client;
use crate::exchange::Exchange;
use crate::received::Received;
use crate::response::{Body, BodyFailed, BodyStream, LocalFuture, Parts, Response};

/// Most bytes that a body at hand gives in one piece: a piece is worth its turn, and does not hold
/// the lane.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// One stretch of a body.
pub(crate) enum Segment<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// Bytes of the body's file.
    File {
        /// The first.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// A piece of a stream, that has to be made.
    Piece,
    /// There is no such segment.
    End,
}

/// The segment of that number; `text` is that of [`Body::Text`].
pub(crate) fn of_body<'a>(body: &'a Body, text: &'a [u8], number: usize) -> Segment<'a> {
    let only = |bytes| match number {
        0 => Segment::Bytes(bytes),
        _ => Segment::End,
    };
    match body {
        Body::Empty | Body::Tunnel(_) => Segment::End,
        Body::Text => only(text),
        Body::Static(bytes) => only(bytes),
        Body::Shared(bytes) => only(bytes),
        Body::Stream(_) => Segment::Piece,
        Body::File(body) => match &body.parts {
            Parts::One { offset, length } if number == 0 => {
                slice(body.file.content(), *offset, *length)
            }
            Parts::One { .. } => Segment::End,
            Parts::Many { parts, end } => match parts.get(number / 2) {
                Some((head, _, _)) if number.is_multiple_of(2) => Segment::Bytes(head),
                Some((_, offset, length)) => slice(body.file.content(), *offset, *length),
                None if number == parts.len() * 2 => Segment::Bytes(end),
                None => Segment::End,
            },
        },
    }
}

fn slice(content: Option<&[u8]>, offset: u64, length: u64) -> Segment<'_> {
    match content {
        Some(content) => {
            let range = offset as usize..(offset + length) as usize;
            Segment::Bytes(content.get(range).unwrap_or_default())
        }
        None => Segment::File { offset, length },
    }
}

impl Response {
    /// Takes the body out, to be had piece by piece: by filters that change it or have to know when
    /// it ends.
    pub fn take_stream(&mut self) -> Box<dyn BodyStream> {
        match self.take_body() {
            Body::Stream(stream) => stream,
            body => Box::<AtHand>::default().of(body, self),
        }
    }
}

impl Exchange {
    /// As [`Response::take_stream`], in memory that an earlier body of the exchange has left.
    pub fn take_stream(&mut self) -> Box<dyn BodyStream> {
        match self.response.take_body() {
            Body::Stream(stream) => stream,
            body => self
                .rooms
                .take_spare::<AtHand>()
                .of(body, &mut self.response),
        }
    }
}

/// A body at hand, given out in pieces.
struct AtHand {
    body: Body,
    text: Received,
    /// The segment that is given next, and what was given of it in bytes.
    number: usize,
    at: u64,
    /// The most bytes of a piece, at least one.
    piece_bytes_max: usize,
}

impl Default for AtHand {
    fn default() -> Self {
        Self {
            body: Body::Empty,
            text: Received::default(),
            number: 0,
            at: 0,
            piece_bytes_max: PIECE_BYTES_MAX,
        }
    }
}

impl AtHand {
    /// Takes a body, and its text where it is one.
    fn of(mut self: Box<Self>, body: Body, response: &mut Response) -> Box<Self> {
        if let Body::Text = body {
            // The response gets the memory of an earlier text.
            std::mem::swap(&mut self.text, response.received_mut());
        }
        self.body = body;
        self
    }

    /// Puts the next piece into `out`. `false`: it was the last. `None`: a file has to be read
    /// first that is not in memory, by [`AtHand::read_on_thread`].
    fn piece(
        &mut self,
        exchange: &Exchange,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>, BodyFailed> {
        match of_body(&self.body, &self.text, self.number) {
            Segment::End | Segment::Piece => return Ok(Some(false)),
            Segment::Bytes(bytes) => {
                let rest = bytes.get(self.at as usize..).unwrap_or_default();
                out.extend_from_slice(&rest[..rest.len().min(self.piece_bytes_max)]);
            }
            Segment::File { offset, length } => {
                out.resize(self.piece_bytes(length - self.at), 0);
                let file = descriptor(&self.body)?;
                let read = files::read_at_once(file, out, offset + self.at).transpose();
                let Some(read) = read else {
                    out.clear();
                    return Ok(None);
                };
                out.truncate(checked(exchange, read)?);
            }
        }
        Ok(Some(self.gave(out.len())))
    }

    /// Puts the next piece into `out`, which is of a file that is not in memory. `false`: it was
    /// the last.
    async fn read_on_thread(
        &mut self,
        exchange: &Exchange,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        let Segment::File { offset, length } = of_body(&self.body, &self.text, self.number) else {
            return Err(BodyFailed);
        };
        exchange.lane.counters.file_waits.add();
        let file = descriptor(&self.body)?;
        let (bytes_max, offset) = (self.piece_bytes(length - self.at), offset + self.at);
        let read = files::read_on_thread(file, out, bytes_max, offset).await;
        checked(exchange, read)?;
        Ok(self.gave(out.len()))
    }

    /// The bytes of a piece of a file of which so many are left.
    fn piece_bytes(&self, left: u64) -> usize {
        let bytes_max = self.piece_bytes_max;
        usize::try_from(left).map_or(bytes_max, |left| left.min(bytes_max))
    }

    /// So many bytes of the present segment are given out. Returns whether more follow.
    fn gave(&mut self, bytes: usize) -> bool {
        let segment = |number| of_body(&self.body, &self.text, number);
        let length = match segment(self.number) {
            Segment::Bytes(bytes) => bytes.len() as u64,
            Segment::File { length, .. } => length,
            Segment::End | Segment::Piece => 0,
        };
        self.at += bytes as u64;
        if self.at >= length {
            self.number += 1;
            self.at = 0;
        }
        !matches!(of_body(&self.body, &self.text, self.number), Segment::End)
    }
}

/// The file of a body.
fn descriptor(body: &Body) -> Result<BorrowedFd<'_>, BodyFailed> {
    match body {
        Body::File(body) => body.file.descriptor().ok_or(BodyFailed),
        _ => Err(BodyFailed),
    }
}

/// The bytes that were read of a file; what was announced and is not there is a failure.
fn checked(exchange: &Exchange, read: io::Result<usize>) -> Result<usize, BodyFailed> {
    match read {
        Ok(0) => exchange.log(
            Level::Alert,
            format_args!("file was truncated while it was sent"),
        ),
        Ok(read) => return Ok(read),
        Err(error) => exchange.log(
            Level::Crit,
            format_args!("pread() failed {}", Errno(&error)),
        ),
    }
    Err(BodyFailed)
}

impl BodyStream for AtHand {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        _client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            // It waits for nothing but disks: others have their turn between two pieces.
            tokio::task::yield_now().await;
            match self.piece(exchange, out)? {
                Some(more) => Ok(more),
                None => self.read_on_thread(exchange, out).await,
            }
        })
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn limit_pieces(&mut self, bytes_max: usize) {
        self.piece_bytes_max = bytes_max.clamp(1, PIECE_BYTES_MAX);
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        self.piece(exchange, out).transpose()
    }

    fn recycle(mut self: Box<Self>, exchange: &mut Exchange) {
        self.body = Body::Empty;
        self.text.clear();
        if self.text.room().capacity() > PIECE_BYTES_MAX {
            self.text = Received::default();
        }
        self.number = 0;
        self.at = 0;
        self.piece_bytes_max = PIECE_BYTES_MAX;
        let held_bytes = self.text.room().capacity();
        exchange.rooms.keep_spare(self, held_bytes);
    }
}
