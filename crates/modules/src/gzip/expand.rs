//! A body on its way through an expander.

use flate2::{Decompress, FlushDecompress, Status};
use turnpike_http::connection::Stream;
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture};
use turnpike_lane::log::Level;

/// The largest window that a gzip member may need (RFC 1951 section 2).
const WINDOW_BITS: u8 = 15;

/// A gzip body that is expanded as it comes. Several members follow one another (RFC 1952 section
/// 2.2).
pub(super) struct Expanded {
    body: Box<dyn BodyStream>,
    /// Most bytes in one piece: a small body may expand to a large one.
    piece_bytes: usize,
    /// Whether the client takes no more, and the rest is for others.
    draining: bool,
    /// The piece that is expanded, and what was taken of it in bytes.
    piece: Vec<u8>,
    taken: usize,
    /// Whether the body has more pieces.
    more: bool,
    member: Option<Decompress>,
}

impl Expanded {
    pub(super) fn new(body: Box<dyn BodyStream>, piece_bytes: usize) -> Self {
        Self {
            body,
            piece_bytes: piece_bytes.max(1),
            draining: false,
            piece: Vec::new(),
            taken: 0,
            more: true,
            member: None,
        }
    }

    /// Expands what is at hand. `None`: nothing is.
    fn at_hand(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        loop {
            match self.expand(exchange, out) {
                Err(failed) => return Some(Err(failed)),
                Ok(true) => return Some(Ok(true)),
                Ok(false) if !self.more => return Some(self.end(exchange)),
                Ok(false) => {}
            }
            self.piece.clear();
            self.taken = 0;
            match self.body.ready(exchange, &mut self.piece) {
                None => return (!out.is_empty()).then_some(Ok(true)),
                Some(Err(failed)) => return Some(Err(failed)),
                Some(Ok(more)) => self.more = more,
            }
        }
    }

    /// Expands the piece. `true`: the output is full, `false`: the piece is used up.
    fn expand(&mut self, exchange: &Exchange, out: &mut Vec<u8>) -> Result<bool, BodyFailed> {
        loop {
            let rest = self.piece.get(self.taken..).unwrap_or_default();
            if out.len() >= self.piece_bytes {
                return Ok(true);
            }
            if rest.is_empty() && self.member.is_none() {
                return Ok(false);
            }
            let member = self
                .member
                .get_or_insert_with(|| Decompress::new_gzip(WINDOW_BITS));
            out.reserve(self.piece_bytes - out.len());
            let (taken, given) = (member.total_in(), out.len());
            let status = member.decompress_vec(rest, out, FlushDecompress::None);
            let taken = (member.total_in() - taken) as usize;
            self.taken += taken;
            match status {
                Ok(Status::StreamEnd) => self.member = None,
                Ok(_) if taken == 0 && out.len() == given => return Ok(false),
                Ok(_) => {}
                Err(error) => {
                    exchange.log(Level::Error, format_args!("inflate() failed: {error}"));
                    return Err(BodyFailed);
                }
            }
        }
    }

    /// The body has ended: so must its last member have.
    fn end(&self, exchange: &Exchange) -> Result<bool, BodyFailed> {
        if self.member.is_none() {
            return Ok(false);
        }
        exchange.log(
            Level::Error,
            format_args!("inflate() returned BUF_ERROR: the response ended too early"),
        );
        Err(BodyFailed)
    }
}

impl BodyStream for Expanded {
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
            // Expanding takes its time: others have their turn between two pieces.
            tokio::task::yield_now().await;
            loop {
                if let Some(done) = self.at_hand(exchange, out) {
                    return done;
                }
                self.piece.clear();
                self.taken = 0;
                self.more = self.body.next(exchange, client, &mut self.piece).await?;
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
        self.body.ended(exchange);
    }
}
