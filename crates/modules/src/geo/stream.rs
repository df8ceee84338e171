//! The family in `stream`.

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_stream::plan::{Builder, Family};

use super::{Geo, plan, rows};

impl Family for Geo {
    fn name(&self) -> &'static str {
        "stream geo"
    }

    fn rows(&self) -> &'static [Row] {
        rows::STREAM
    }

    fn reference(&self) -> &'static [ReferenceText] {
        super::REFERENCE
    }

    fn stream(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        for block in view.children("geo") {
            if let Err(error) = plan::define(block, builder) {
                builder.report(error);
            }
        }
        Ok(())
    }
}
