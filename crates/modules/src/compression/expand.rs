//! Expanding a body.

use flate2::{Decompress, FlushDecompress, Status};
use turnpike_http::body_filter::{BodyFilter, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::BodyFailed;
use turnpike_lane::log::Level;

/// The largest window that a gzip member may need (RFC 1951 section 2).
const WINDOW_BITS: u8 = 15;

/// Expands a gzip body as it comes. Several members follow one another (RFC 1952 section 2.2).
pub(super) struct Expander {
    /// Most bytes in one piece: a small body may expand to a large one.
    piece_bytes: usize,
    member: Option<Decompress>,
}

impl Expander {
    pub(super) fn new(piece_bytes: usize) -> Self {
        Self {
            piece_bytes: piece_bytes.max(1),
            member: None,
        }
    }

    /// The body has ended: so must its last member have.
    fn end(&self, exchange: &Exchange) -> Result<Passed, BodyFailed> {
        if self.member.is_none() {
            return Ok(Passed::Ended);
        }
        exchange.log(
            Level::Error,
            format_args!("inflate() returned BUF_ERROR: the response ended too early"),
        );
        Err(BodyFailed)
    }
}

impl BodyFilter for Expander {
    fn pass(
        &mut self,
        exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        loop {
            if out.len() >= self.piece_bytes {
                return Ok(Passed::Full);
            }
            let rest = piece.rest();
            if rest.is_empty() && self.member.is_none() {
                break;
            }
            let member = self
                .member
                .get_or_insert_with(|| Decompress::new_gzip(WINDOW_BITS));
            out.reserve(self.piece_bytes - out.len());
            let (taken, given) = (member.total_in(), out.len());
            let status = member.decompress_vec(rest, out, FlushDecompress::None);
            let taken = (member.total_in() - taken) as usize;
            piece.take(taken);
            match status {
                Ok(Status::StreamEnd) => self.member = None,
                Ok(_) if taken == 0 && out.len() == given => break,
                Ok(_) => {}
                Err(error) => {
                    exchange.log(Level::Error, format_args!("inflate() failed: {error}"));
                    return Err(BodyFailed);
                }
            }
        }
        if piece.is_last() {
            self.end(exchange)
        } else {
            Ok(Passed::NeedsMore)
        }
    }
}
