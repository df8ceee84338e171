//! `limit_conn`: how many requests at the same time, by a key.
//!
//! A request counts from the moment its head was read until it was logged. The counts of a zone
//! are shared by all lanes and live on over reloads, as the requests do that they count.

mod handler;
mod plan;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod zone;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "limit_conn",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    metrics: std::slice::from_ref(&handler::REJECTIONS),
    variables: || handler::VARIABLES,
    http,
    location: |view, builder, draft| plan::location(view, builder, draft),
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::zones(view, builder, "limit_conn")?;
    plan::show_rejections(builder);
    Ok(())
}
