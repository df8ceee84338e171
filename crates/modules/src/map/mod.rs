//! `map`: a variable whose value depends on another text; `num_map`: on a number.
//!
//! The value is found when the variable is asked for and kept with the request, unless the block
//! says `volatile`. The family changes nothing in a request but the groups of a pattern it tries.

mod handler;
mod numbers;
mod plan;
mod rows;
pub(crate) mod stream;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "map",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::define_all(view, builder);
    Ok(())
}
