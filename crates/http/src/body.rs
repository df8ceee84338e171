//! The request's body: what came with the head, what was read, what is still to come.

use turnpike_wire::h1::{BodyDecoder, BodyState, ChunkError, Framing};

use crate::exchange::Exchange;

/// A request's body.
#[derive(Default)]
pub struct RequestBody {
    decoder: Option<BodyDecoder>,
    /// Bytes of the exchange's input, after the head, that the decoder has taken.
    taken: usize,
    finished: bool,
    /// The body's bytes, when a handler asked for them.
    pub bytes: Vec<u8>,
    /// Whether `Expect: 100-continue` was answered, or need not be.
    expect_answered: bool,
}

/// How far a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All of it was taken.
    Complete,
    /// More has to be read from the connection.
    Incomplete,
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Its chunked coding is broken: 400.
    Malformed,
    /// It is larger than `client_max_body_size` allows: 413.
    TooLarge,
}

impl RequestBody {
    /// Makes ready for the next request; the room is kept.
    pub fn clear(&mut self) {
        self.decoder = None;
        self.taken = 0;
        self.finished = false;
        self.bytes.clear();
        self.expect_answered = false;
    }

    /// Whether nothing of it was taken yet.
    pub fn is_untouched(&self) -> bool {
        self.decoder.is_none() && !self.finished
    }

    /// Whether all of it was taken.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// No `100 Continue` is sent any more.
    pub fn expect_answered(&mut self) {
        self.expect_answered = true;
    }

    /// Bytes of the input after the head that belong to the body and were taken.
    pub fn taken(&self) -> usize {
        self.taken
    }
}

impl Exchange {
    /// Whether the client waits for `100 Continue` before it sends the body. Asked once.
    pub fn take_expect(&mut self) -> bool {
        let waits = self.head.expect_continue
            && self.head.version == turnpike_wire::h1::Version::Http11
            && self.head.framing != Framing::None
            && !self.body.expect_answered;
        self.body.expect_answered = true;
        waits
    }

    /// Takes what is buffered of the body: kept in [`RequestBody::bytes`], or thrown away.
    ///
    /// # Errors
    /// When the coding is broken, or (only where it is kept) the body too large.
    pub fn take_buffered_body(&mut self, keep: bool) -> Result<Progress, BodyError> {
        if self.body.finished {
            return Ok(Progress::Complete);
        }
        let framing = self.head.framing;
        let body_bytes_max = self.location().settings.client_max_body_bytes;
        let body = &mut self.body;
        let decoder = body
            .decoder
            .get_or_insert_with(|| BodyDecoder::new(framing));
        loop {
            let from = self.head_start + self.head.head_len + body.taken;
            let input = self.input.get(from..).unwrap_or_default();
            let event = match decoder.feed(input) {
                Ok(event) => event,
                Err(error) => return Err(malformed(error)),
            };
            body.taken += event.consumed;
            if keep {
                body.bytes.extend_from_slice(event.data.of(input));
                if body_bytes_max > 0 && body.bytes.len() as u64 > body_bytes_max {
                    return Err(BodyError::TooLarge);
                }
            }
            if event.state == BodyState::Finished {
                body.finished = true;
                return Ok(Progress::Complete);
            }
            if event.consumed == 0 {
                return Ok(Progress::Incomplete);
            }
        }
    }

    /// Drops the taken part of the body from the input, so that the buffer does not grow with the
    /// body. The head stays, since its fields may be asked for until the request is logged.
    pub fn forget_taken_body(&mut self) {
        let start = self.head_start + self.head.head_len;
        let end = (start + self.body.taken).min(self.input.len());
        if start < end {
            self.input.drain(start..end);
        }
        self.request_length += self.body.taken as u64;
        self.body.taken = 0;
    }
}

fn malformed(_: ChunkError) -> BodyError {
    BodyError::Malformed
}
