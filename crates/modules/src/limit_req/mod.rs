//! `limit_req`: how many requests in a time, by a key, as a leaky bucket.
//!
//! The buckets of a zone are shared by all lanes and live on over reloads. A request above the
//! rate is delayed, or refused when even the burst is used up.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod zone;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::plan::{Builder, Family};

pub(crate) const FAMILY: Family = Family {
    name: "limit_req",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    metrics: std::slice::from_ref(&handler::REJECTIONS),
    variables: || handler::VARIABLES,
    http,
    location: plan::location,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    plan::zones(view, builder)?;
    plan::show_rejections(builder);
    Ok(())
}
