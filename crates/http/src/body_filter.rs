//! Changes of a body on its way to the client. A filter sees pieces and says what becomes of them;
//! [`Filtered`] does for all of them what a [`BodyStream`] has to do besides.
//!
//! Nothing here knows what a filter does with the bytes.

use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::{BodyFailed, BodyStream, LocalFuture};

/// Most bytes of a body that pass a filter in one turn: compressing them at the highest level takes
/// some milliseconds, and a filter may let nothing of them through.
const TURN_BYTES_MAX: usize = 128 * 1024;

/// A change of a body, piece by piece. One value serves one response.
pub trait BodyFilter {
    /// Changes what is left of `piece`, says how much of it is taken, and appends the result to
    /// `out`.
    ///
    /// # Errors
    /// The body cannot be changed; the filter has said why in the log.
    fn pass(
        &mut self,
        exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed>;

    /// Appends what the filter holds back, as far as the client can use it: the body has more, but
    /// nothing is at hand.
    ///
    /// # Errors
    /// As for [`BodyFilter::pass`].
    fn flush(&mut self, _exchange: &Exchange, _out: &mut Vec<u8>) -> Result<(), BodyFailed> {
        Ok(())
    }

    /// Whether something is done off the lane that has to end before the filter is asked again.
    fn is_working(&self) -> bool {
        false
    }

    /// Waits for what is done off the lane, and appends what comes of it. Says whether `out` then
    /// holds the end of what the client gets.
    ///
    /// # Errors
    /// As for [`BodyFilter::pass`].
    fn end_work<'a>(
        &'a mut self,
        _exchange: &'a Exchange,
        _out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Leaves with the exchange what came of the last call, where it leaves anything.
    fn note(&mut self, _exchange: &mut Exchange) {}

    /// Called once, before the exchange is logged, whether or not the whole body was sent.
    fn ended(&mut self, _exchange: &Exchange) {}
}

/// What a filter says after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The piece is taken whole; what is at hand of the body may be added.
    NeedsMore,
    /// The output is worth sending. The filter is called again before the next piece, with what is
    /// left of this one.
    Full,
    /// The piece is taken whole, and what comes of it is made off the lane.
    Working,
    /// The output holds the end of what the client gets.
    Ended,
}

/// A piece of a body that is to be filtered.
#[derive(Debug, Default)]
pub struct Piece {
    bytes: Vec<u8>,
    /// Bytes that the filter has taken already.
    taken: usize,
    is_last: bool,
}

impl Piece {
    /// The bytes that are not taken yet.
    pub fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Whether the body ends behind this piece.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Takes the next `count` bytes.
    pub fn take(&mut self, count: usize) {
        self.taken = self.bytes.len().min(self.taken + count);
    }

    /// Takes all that is left and appends it to `out`; a whole piece is not copied.
    pub fn move_to(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() && self.taken == 0 {
            std::mem::swap(&mut self.bytes, out);
        } else {
            out.extend_from_slice(self.rest());
        }
        self.clear();
    }

    /// What a filter that works piece by piece says, with `out` filled.
    pub fn passed(&self, out: &[u8]) -> Passed {
        match out.is_empty() {
            _ if self.is_last => Passed::Ended,
            true => Passed::NeedsMore,
            false => Passed::Full,
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.taken = 0;
    }
}

/// A body on its way through a filter.
pub struct Filtered<F> {
    body: Box<dyn BodyStream>,
    filter: F,
    /// What was filtered before the body is sent.
    begun: Vec<u8>,
    piece: Piece,
    /// Whether the filter has to see `piece`.
    has_piece: bool,
    /// Whether the client takes no more, and the rest is for others.
    draining: bool,
}

impl<F: BodyFilter> Filtered<F> {
    /// Sends `body` through a filter.
    pub fn new(body: Box<dyn BodyStream>, filter: F) -> Self {
        Self {
            body,
            filter,
            begun: Vec::new(),
            piece: Piece::default(),
            has_piece: false,
            draining: false,
        }
    }

    /// The same body behind `text`, which was filtered already.
    #[must_use]
    pub fn with_begun(self, text: Vec<u8>) -> Self {
        Self {
            begun: text,
            ..self
        }
    }

    /// Filters what is at hand. `None`: nothing comes of it.
    fn at_hand(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>, BodyFailed> {
        if !self.begun.is_empty() {
            out.append(&mut self.begun);
            return Ok(Some(true));
        }
        let mut turn_bytes = 0;
        let mut must_flush = false;
        loop {
            if self.filter.is_working() {
                return Ok((!out.is_empty()).then_some(true));
            }
            if self.has_piece {
                must_flush = true;
                turn_bytes += self.piece.rest().len();
                let passed = self.filter.pass(exchange, &mut self.piece, out)?;
                self.filter.note(exchange);
                match passed {
                    Passed::Ended => return Ok(Some(false)),
                    Passed::Full => return Ok(Some(true)),
                    Passed::NeedsMore | Passed::Working => self.has_piece = false,
                }
                if turn_bytes >= TURN_BYTES_MAX {
                    return Ok(Some(true));
                }
            }
            self.piece.clear();
            let Some(more) = self.body.ready(exchange, &mut self.piece.bytes) else {
                if must_flush {
                    self.filter.flush(exchange, out)?;
                    self.filter.note(exchange);
                }
                return Ok((!out.is_empty()).then_some(true));
            };
            self.got(more?);
        }
    }

    /// A piece has come.
    fn got(&mut self, more: bool) {
        self.piece.is_last = !more;
        self.has_piece = true;
    }
}

impl<F: BodyFilter> BodyStream for Filtered<F> {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        if self.draining {
            return self.body.next(exchange, client, out);
        }
        Box::pin(async move {
            // What is at hand is filtered without a wait: others have their turn between two
            // pieces.
            tokio::task::yield_now().await;
            loop {
                if let Some(more) = self.at_hand(exchange, out)? {
                    return Ok(more);
                }
                if self.filter.is_working() {
                    let is_last = self.filter.end_work(exchange, out).await?;
                    self.filter.note(exchange);
                    if is_last || !out.is_empty() {
                        return Ok(!is_last);
                    }
                    continue;
                }
                self.piece.clear();
                let piece = &mut self.piece.bytes;
                let more = self.body.next(exchange, client, piece).await?;
                self.got(more);
            }
        })
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        if self.draining {
            return self.body.ready(exchange, out);
        }
        self.at_hand(exchange, out).transpose()
    }

    fn may_end_at_once(&self) -> bool {
        self.body.may_end_at_once()
    }

    fn is_of_parts(&self) -> bool {
        self.body.is_of_parts()
    }

    fn read_ahead<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, ()> {
        self.body.read_ahead(exchange, client)
    }

    fn outlives_client(&mut self) -> bool {
        self.draining = self.body.outlives_client();
        self.draining
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        self.filter.ended(exchange);
        self.body.ended(exchange);
    }
}

#[cfg(test)]
mod tests;
