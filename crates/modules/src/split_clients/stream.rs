//! The family in `stream`.

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_stream::plan::{Builder, Family};

use super::{SplitClients, plan, rows};

impl Family for SplitClients {
    fn name(&self) -> &'static str {
        "stream split_clients"
    }

    fn rows(&self) -> &'static [Row] {
        rows::STREAM
    }

    fn reference(&self) -> &'static [ReferenceText] {
        super::REFERENCE
    }

    fn stream(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        for block in view.children("split_clients") {
            if let Err(error) = plan::define(block, builder) {
                builder.report(error);
            }
        }
        Ok(())
    }
}
