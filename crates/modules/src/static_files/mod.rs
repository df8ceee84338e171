//! Files of the file system as answers: what a location does unless it says otherwise.
//!
//! A path that ends in a slash is a folder's and is left to those that list or choose.

mod handler;
mod plan;
mod rows;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// Files: every location has them. `root` and `types` are the core's, since it names files itself.
pub(crate) struct StaticFiles;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for StaticFiles {
    fn name(&self) -> &'static str {
        "static"
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
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
