//! A body in which strings are replaced.

use std::sync::Arc;

use turnpike_http::body_filter::{BodyFilter, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::BodyFailed;

use super::strings::{Strings, Times};

/// Replaces strings in one body.
pub(super) struct Replacing {
    strings: Arc<Strings>,
    /// What stands in place of each string.
    replacements: Arc<[Vec<u8>]>,
    /// Strings that are still looked for. `None`: always all of them.
    wanted: Option<Wanted>,
    /// The beginning of a string, perhaps.
    held: Vec<u8>,
}

/// Strings that are replaced once.
struct Wanted {
    is_wanted: Vec<bool>,
    count: usize,
}

impl Replacing {
    pub(super) fn new(strings: Arc<Strings>, replacements: Arc<[Vec<u8>]>, times: Times) -> Self {
        let wanted = (times == Times::Once).then(|| Wanted {
            is_wanted: vec![true; replacements.len()],
            count: replacements.len(),
        });
        Self {
            strings,
            replacements,
            wanted,
            held: Vec::new(),
        }
    }

    /// Replaces what there is to replace, and keeps what may be the beginning of a string.
    pub(super) fn replace(&mut self, text: &[u8], is_last: bool, out: &mut Vec<u8>) {
        self.held.extend_from_slice(text);
        let text = std::mem::take(&mut self.held);
        let mut at = 0;
        let mut end = text.len();
        while !self.is_done() {
            let rest = &text[at..];
            let found = match &self.wanted {
                None => self.strings.find(rest, |_| true),
                Some(wanted) => self.strings.find(rest, |string| wanted.is_wanted[string]),
            };
            // What has begun in front of it, or at the same place, comes first.
            let far = |found| self.strings.is_far_from_end(found, rest);
            let begun = if is_last || found.is_some_and(far) {
                rest.len()
            } else {
                self.strings.begun(rest)
            };
            let Some(found) = found.filter(|found| found.start < begun) else {
                end = at + begun;
                break;
            };
            out.extend_from_slice(&rest[..found.start]);
            out.extend_from_slice(&self.replacements[found.string]);
            if let Some(wanted) = &mut self.wanted {
                wanted.is_wanted[found.string] = false;
                wanted.count -= 1;
            }
            at += found.end;
        }
        out.extend_from_slice(&text[at..end]);
        self.held = text;
        self.held.drain(..end);
    }

    /// Whether nothing is looked for any more.
    fn is_done(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.count == 0)
    }
}

impl BodyFilter for Replacing {
    fn pass(
        &mut self,
        _: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        if self.is_done() && self.held.is_empty() {
            piece.move_to(out);
        } else {
            self.replace(piece.rest(), piece.is_last(), out);
            piece.take(piece.rest().len());
        }
        Ok(piece.passed(out))
    }
}
