//! `random_index`: one of a folder's files, by chance.

mod handler;
mod plan;
mod rows;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `random_index`.
pub(crate) struct RandomIndex;

impl Family for RandomIndex {
    fn name(&self) -> &'static str {
        "random_index"
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
