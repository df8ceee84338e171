//! `geo`: a variable whose value depends on an address.
//!
//! Addresses are looked up in networks (the longest prefix wins) or in ranges. nginx's binary
//! bases are neither read nor written: texts are read as they are.

mod handler;
mod networks;
mod plan;
mod ranges;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "geo",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    for block in view.children("geo") {
        if let Err(error) = plan::define(block, builder) {
            builder.report(error);
        }
    }
    Ok(())
}
