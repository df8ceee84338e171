//! `split_clients`: a variable that splits clients into parts of given sizes.
//!
//! Which part a text falls into depends on its hash alone, so a client stays where it is.

mod handler;
mod plan;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "split_clients",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    for block in view.children("split_clients") {
        if let Err(error) = plan::define(block, builder) {
            builder.report(error);
        }
    }
    Ok(())
}
