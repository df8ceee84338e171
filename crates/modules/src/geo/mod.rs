//! `geo`: a variable whose value depends on an address.
//!
//! Addresses are looked up in networks (the longest prefix wins) or in ranges. nginx's binary
//! bases are neither read nor written: texts are read as they are.

mod handler;
mod networks;
mod plan;
mod ranges;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) struct Geo;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for Geo {
    fn name(&self) -> &'static str {
        "geo"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        for block in view.children("geo") {
            if let Err(error) = plan::define(block, builder) {
                builder.report(error);
            }
        }
        Ok(())
    }
}
