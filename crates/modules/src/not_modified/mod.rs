//! Conditional requests (RFC 9110 section 13): 304 for what the client has, 412 for what it does
//! not want changed.
//!
//! Every location has this filter. It judges what a handler is about to answer and knows nothing
//! of where that came from.

mod handler;
mod plan;
mod rows;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// Conditional requests, by `if_modified_since`.
pub(crate) struct NotModified;

impl Family for NotModified {
    fn name(&self) -> &'static str {
        "not_modified"
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
