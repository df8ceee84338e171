//! Bodies that are at hand, as rows of segments: what is sent of them, or handed to a filter.
//!
//! Nothing here sends or waits.

use turnpike_lane::log::{Errno, Level};

use crate::client::Client;
use crate::exchange::Exchange;
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
            body => Box::new(AtHand {
                text: self.take_text(),
                body,
                number: 0,
                at: 0,
            }),
        }
    }
}

/// A body at hand, given out in pieces.
struct AtHand {
    body: Body,
    text: Vec<u8>,
    /// The segment that is given next, and what was given of it in bytes.
    number: usize,
    at: u64,
}

impl AtHand {
    /// Puts the next piece into `out`. `false`: it was the last.
    fn piece(&mut self, exchange: &Exchange, out: &mut Vec<u8>) -> Result<bool, BodyFailed> {
        let length = match of_body(&self.body, &self.text, self.number) {
            Segment::End | Segment::Piece => return Ok(false),
            Segment::Bytes(bytes) => {
                let rest = bytes.get(self.at as usize..).unwrap_or_default();
                out.extend_from_slice(&rest[..rest.len().min(PIECE_BYTES_MAX)]);
                bytes.len() as u64
            }
            Segment::File { offset, length } => {
                let left = usize::try_from(length - self.at).unwrap_or(usize::MAX);
                out.resize(left.min(PIECE_BYTES_MAX), 0);
                let read = read(&self.body, exchange, out, offset + self.at)?;
                out.truncate(read);
                length
            }
        };
        self.at += out.len() as u64;
        if self.at >= length {
            self.number += 1;
            self.at = 0;
        }
        Ok(!matches!(
            of_body(&self.body, &self.text, self.number),
            Segment::End
        ))
    }
}

/// Reads of the body's file; what was announced and is not there is a failure.
fn read(
    body: &Body,
    exchange: &Exchange,
    out: &mut [u8],
    offset: u64,
) -> Result<usize, BodyFailed> {
    let Body::File(body) = body else {
        return Err(BodyFailed);
    };
    match body.file.read_at(out, offset) {
        Ok(0) if !out.is_empty() => exchange.log(
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
            // It never waits for anything: others have their turn between two pieces.
            tokio::task::yield_now().await;
            self.piece(exchange, out)
        })
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        Some(self.piece(exchange, out))
    }
}
