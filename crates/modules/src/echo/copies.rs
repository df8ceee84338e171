//! Texts that are written several times (`echo_duplicate`).

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

/// Most bytes of one `echo_duplicate`. A client may choose the number: a test does not need more,
/// and a download that never ends would be of use to nobody.
const COPIES_BYTES_MAX: usize = 100_000_000;

/// Most bytes that are made at once, unless a single copy is longer: a piece is worth its turn, and
/// does not hold the lane.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// A text that is written several times.
pub(super) struct Copies {
    text: Vec<u8>,
    left: usize,
}

impl Copies {
    /// The copies that a command asks for. `None`, and a line in the log: the count cannot be
    /// followed.
    pub(super) fn evaluate(exchange: &Exchange, count: &Template, text: &Template) -> Option<Self> {
        let (count, text) = (count.value(exchange), text.value(exchange));
        let number = std::str::from_utf8(&count).ok();
        let number = number.and_then(|number| number.parse::<usize>().ok());
        let left = number.filter(|left| left.saturating_mul(text.len()) <= COPIES_BYTES_MAX);
        if left.is_none() {
            exchange.log(
                Level::Error,
                format_args!("\"echo_duplicate\": the count is too large or not a number"),
            );
        }
        let left = left.map(|left| if text.is_empty() { 0 } else { left });
        left.map(|left| Self { text, left })
    }

    /// Whether all of them make one piece with what is written already.
    pub(super) fn fit_behind(&self, out: &[u8]) -> bool {
        let bytes = self.text.len().saturating_mul(self.left);
        out.len().saturating_add(bytes) <= PIECE_BYTES_MAX
    }

    /// Whether all of them are written.
    pub(super) fn are_written(&self) -> bool {
        self.left == 0
    }

    /// Writes as many as make a piece with what is written already, and one at least.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        let room = PIECE_BYTES_MAX.saturating_sub(out.len());
        let count = (room / self.text.len().max(1)).max(1).min(self.left);
        out.extend_from_slice(&self.text.repeat(count));
        self.left -= count;
    }
}
