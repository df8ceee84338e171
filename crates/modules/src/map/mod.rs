//! `map`: a variable whose value depends on another text; `num_map`: on a number.
//!
//! The value is found when the variable is asked for and kept with the request, unless the block
//! says `volatile`. The family changes nothing in a request but the groups of a pattern it tries.

mod handler;
mod numbers;
mod plan;
mod rows;
mod stream;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) struct Map;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for Map {
    fn name(&self) -> &'static str {
        "map"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::define_all(view, builder);
        Ok(())
    }
}
