//! The family in `stream`.

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_stream::plan::{Builder, Family};

use super::{Map, plan, rows};

impl Family for Map {
    fn name(&self) -> &'static str {
        "stream map"
    }

    fn rows(&self) -> &'static [Row] {
        rows::STREAM
    }

    fn reference(&self) -> &'static [ReferenceText] {
        super::REFERENCE
    }

    fn stream(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::define_all(view, builder);
        Ok(())
    }
}
