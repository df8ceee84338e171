//! The family in `stream`.

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_stream::plan::{Builder, Family, ServerDraft};

use super::{AccessLog, plan, rows};

impl Family for AccessLog {
    fn name(&self) -> &'static str {
        "stream access_log"
    }

    fn rows(&self) -> &'static [Row] {
        rows::STREAM
    }

    fn reference(&self) -> &'static [ReferenceText] {
        super::REFERENCE
    }

    fn stream(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::stream(view, builder)
    }

    fn server(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut ServerDraft,
    ) -> Result<(), ConfError> {
        plan::server(view, builder, draft)
    }
}
