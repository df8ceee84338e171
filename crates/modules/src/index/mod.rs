//! `index`: the file that stands for a folder.
//!
//! The handler only finds the file's path; the request goes on with that path, and may so meet
//! another location.

mod handler;
mod plan;
mod rows;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family of `index`.
pub(crate) struct Index;

impl Family for Index {
    fn name(&self) -> &'static str {
        "index"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
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
