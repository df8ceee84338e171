//! `slice`: a large response is asked for in parts, each of which a cache keeps under a key of its
//! own (`$slice_range`), and put together again.
//!
//! The first part answers the request itself; the others are subrequests in the same location, one
//! after the other, each once the client has taken the one before it.

mod body;
mod handler;
mod part;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `slice`.
pub(crate) struct Slice;

impl Family for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        variables::ROWS
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
