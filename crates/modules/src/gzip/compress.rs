//! A body on its way through a compressor.

use std::sync::Arc;

use flate2::{Compress, FlushCompress, Status};
use turnpike_http::connection::Stream;
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::LaneSlot;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture};
use turnpike_lane::log::Level;

use super::plan::{Compressing, Spare};

/// Bytes of a body that are compressed in one turn: at the highest level they take some
/// milliseconds, however little comes of them.
const TURN_BYTES_MAX: usize = 128 * 1024;

/// Room that is made in the output at once, in bytes.
const ROOM_BYTES: usize = 4 * 1024;

/// A body that is compressed as it comes. What has come is flushed when no more is at hand, so that
/// a client sees what a slow server has said.
pub(super) struct Compressed {
    body: Box<dyn BodyStream>,
    compression: Arc<Compressing>,
    spare: LaneSlot<Spare>,
    compress: Option<Compress>,
    /// Whether the client takes no more, and the rest is for others.
    draining: bool,
    /// The piece that is compressed next.
    piece: Vec<u8>,
}

impl Compressed {
    pub(super) fn new(
        body: Box<dyn BodyStream>,
        compression: Arc<Compressing>,
        spare: LaneSlot<Spare>,
    ) -> Self {
        Self {
            body,
            compression,
            spare,
            compress: None,
            draining: false,
            piece: Vec::new(),
        }
    }

    /// Compresses what is at hand. `None`: nothing is.
    fn at_hand(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        let mut taken = None;
        while out.len() < self.compression.piece_bytes && taken < Some(TURN_BYTES_MAX) {
            self.piece.clear();
            let more = match self.body.ready(exchange, &mut self.piece) {
                None if taken.is_none() => return None,
                None => {
                    let flushed = self.feed(exchange, FlushCompress::Sync, out);
                    return Some(flushed.map(|()| true));
                }
                Some(Err(failed)) => return Some(Err(failed)),
                Some(Ok(more)) => more,
            };
            taken = Some(taken.unwrap_or(0) + self.piece.len());
            if let Err(failed) = self.feed(exchange, flush_of(more), out) {
                return Some(Err(failed));
            }
            if !more {
                return Some(Ok(false));
            }
        }
        Some(Ok(true))
    }

    /// Compresses the piece.
    fn feed(
        &mut self,
        exchange: &mut Exchange,
        flush: FlushCompress,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let compress = self.compress.get_or_insert_with(|| {
            let spare = exchange.plan.state(&self.spare).take();
            spare.unwrap_or_else(|| self.compression.compressor())
        });
        let begin = compress.total_in();
        loop {
            let taken = (compress.total_in() - begin) as usize;
            let rest = self.piece.get(taken..).unwrap_or_default();
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
        self.piece.clear();
        exchange.compressed_bytes = (compress.total_in(), compress.total_out());
        Ok(())
    }
}

fn flush_of(more: bool) -> FlushCompress {
    match more {
        true => FlushCompress::None,
        false => FlushCompress::Finish,
    }
}

impl BodyStream for Compressed {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: &'a Stream,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        if self.draining {
            return self.body.next(exchange, client, out);
        }
        Box::pin(async move {
            // Compressing takes its time: others have their turn between two pieces.
            tokio::task::yield_now().await;
            loop {
                if let Some(done) = self.at_hand(exchange, out) {
                    return done;
                }
                self.piece.clear();
                let more = self.body.next(exchange, client, &mut self.piece).await?;
                self.feed(exchange, flush_of(more), out)?;
                if !more {
                    return Ok(false);
                }
                match self.at_hand(exchange, out) {
                    Some(done) => return done,
                    None => self.feed(exchange, FlushCompress::Sync, out)?,
                }
                if !out.is_empty() {
                    return Ok(true);
                }
            }
        })
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        self.at_hand(exchange, out)
    }

    fn read_ahead<'a>(&'a mut self, exchange: &'a mut Exchange) -> LocalFuture<'a, ()> {
        self.body.read_ahead(exchange)
    }

    fn outlives_client(&mut self) -> bool {
        self.draining = self.body.outlives_client();
        self.draining
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(compress) = self.compress.take() {
            exchange.plan.state(&self.spare).put(compress);
        }
        self.body.ended(exchange);
    }
}
