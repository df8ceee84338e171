//! `addition`: what other locations answer, before and after the body of a response.

mod handler;
mod plan;
mod rows;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `add_before_body` and `add_after_body`.
pub(crate) struct Addition;

impl Family for Addition {
    fn name(&self) -> &'static str {
        "addition"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn is_silent_unless_written(&self) -> bool {
        true
    }

    fn location(
        &self,
        view: View<'_>,
        _: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, draft)
    }
}
