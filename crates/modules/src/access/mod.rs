//! `allow` and `deny`: who may, by address.

mod handler;
mod plan;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use turnpike_plan::cidr::warn_of_low_bits;

pub(crate) const FAMILY: Family = Family {
    name: "access",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    http,
    location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["allow", "deny"]);
    Ok(())
}

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    warn_of_low_bits(view, builder, &["allow", "deny"]);
    plan::location(view, draft)
}
