//! Parts of a body (RFC 9110 section 14): one range, several as multipart/byteranges, or 416.
//!
//! Every location has this filter. It is the last that sees a response, so that ranges are of what
//! is really sent.

mod body;
mod handler;
mod parse;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// Ranges, by `max_ranges`.
pub(crate) struct Ranges;

impl Family for Ranges {
    fn name(&self) -> &'static str {
        "range"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, draft)
    }
}
