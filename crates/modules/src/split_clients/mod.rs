//! `split_clients`: a variable that splits clients into parts of given sizes.
//!
//! Which part a text falls into depends on its hash alone, so a client stays where it is.

mod handler;
mod plan;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) struct SplitClients;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for SplitClients {
    fn name(&self) -> &'static str {
        "split_clients"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        for block in view.children("split_clients") {
            if let Err(error) = plan::define(block, builder) {
                builder.report(error);
            }
        }
        Ok(())
    }
}
