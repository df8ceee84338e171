//! Access logs: `access_log`, `log_format`, `open_log_file_cache`.
//!
//! A format is compiled to a list of operations, and a line is made in a buffer that its lane
//! keeps, so that writing one allocates nothing. A line is in its file (or in a buffer that was
//! asked for) before the connection is closed. What cannot be written is counted. This family
//! must not know what any variable means.

mod escape;
mod files;
mod format;
mod handler;
mod lane;
mod logged;
mod plan;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

pub(crate) struct AccessLog;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for AccessLog {
    fn name(&self) -> &'static str {
        "access_log"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::predefined(view, builder)?;
        plan::formats(view, builder)
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
