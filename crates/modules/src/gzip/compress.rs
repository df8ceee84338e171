//! Compressing a body.

use std::sync::Arc;

use flate2::{Compress, FlushCompress, Status};
use turnpike_http::body_filter::{BodyFilter, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::BodyFailed;
use turnpike_http::rooms::Room;
use turnpike_lane::log::Level;

use super::kept::Recording;
use super::plan::{Compressing, State};

/// Room that is made in the output at once, in bytes.
const ROOM_BYTES: usize = 4 * 1024;

/// Compresses a body as it comes. What has come is flushed when no more is at hand, so that a
/// client sees what a slow server has said. What comes of a source that may be asked for again is
/// recorded.
pub(super) struct Compressor {
    compression: Arc<Compressing>,
    state: State,
    compress: Option<Compress>,
    recording: Option<Recording>,
}

impl Compressor {
    pub(super) fn new(
        compression: Arc<Compressing>,
        state: State,
        recording: Option<Recording>,
    ) -> Self {
        Self {
            compression,
            state,
            compress: None,
            recording,
        }
    }

    fn feed(
        &mut self,
        exchange: &mut Exchange,
        bytes: &[u8],
        flush: FlushCompress,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let compress = self.compress.get_or_insert_with(|| {
            let spare = exchange.plan.state(&self.state.spare).take();
            spare.unwrap_or_else(|| self.compression.compressor())
        });
        let begin = compress.total_in();
        let recorded_to = out.len();
        loop {
            let taken = (compress.total_in() - begin) as usize;
            let rest = bytes.get(taken..).unwrap_or_default();
            out.reserve(ROOM_BYTES);
            match compress.compress_vec(rest, out, flush) {
                Ok(Status::StreamEnd) => break,
                // All was taken, and there was room for more than it became.
                Ok(_) if out.len() < out.capacity() && flush != FlushCompress::Finish => break,
                Ok(_) => {}
                Err(error) => {
                    exchange.log(Level::Alert, format_args!("deflate() failed: {error}"));
                    return Err(BodyFailed);
                }
            }
        }
        *exchange.rooms.get_mut() = Compressed {
            taken_bytes: compress.total_in(),
            given_bytes: compress.total_out(),
        };
        if let Some(recording) = self.recording.take() {
            self.recording = recording.add(out.get(recorded_to..).unwrap_or_default());
        }
        Ok(())
    }
}

impl BodyFilter for Compressor {
    fn pass(
        &mut self,
        exchange: &mut Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        if out.len() >= self.compression.piece_bytes {
            return Ok(Passed::Full);
        }
        let flush = match piece.is_last() {
            true => FlushCompress::Finish,
            false => FlushCompress::None,
        };
        let rest = piece.rest();
        self.feed(exchange, rest, flush, out)?;
        piece.take(rest.len());
        match piece.is_last() {
            true => {
                if let Some(recording) = self.recording.take() {
                    recording.end(exchange.plan.state(&self.state.kept));
                }
                Ok(Passed::Ended)
            }
            false if out.len() >= self.compression.piece_bytes => Ok(Passed::Full),
            false => Ok(Passed::NeedsMore),
        }
    }

    fn flush(&mut self, exchange: &mut Exchange, out: &mut Vec<u8>) -> Result<(), BodyFailed> {
        self.feed(exchange, b"", FlushCompress::Sync, out)
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(compress) = self.compress.take() {
            exchange.plan.state(&self.state.spare).put(compress);
        }
    }
}

/// Bytes that compression took of a response, and what it made of them.
#[derive(Default)]
pub(super) struct Compressed {
    pub(super) taken_bytes: u64,
    pub(super) given_bytes: u64,
}

impl Room for Compressed {
    fn clear(&mut self) {
        *self = Self::default();
    }
}
