//! `more_set_headers` and its like, as in the module headers-more: fields of responses and requests
//! are set or taken away, those included that the server makes itself.
//!
//! Fields that say where a message ends, and fields of the connection, belong to the protocol and
//! cannot be changed.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `more_set_headers`.
pub(crate) struct MoreHeaders;

impl Family for MoreHeaders {
    fn name(&self) -> &'static str {
        "more_headers"
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
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
