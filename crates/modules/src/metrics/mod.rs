//! `metrics`: every number that the server has, as Prometheus reads them.

mod handler;
mod rows;

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family.
pub(crate) struct Metrics;

impl Family for Metrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        if view.own("metrics").is_some() {
            draft.content = Some(Arc::new(handler::Page));
        }
        Ok(())
    }
}
