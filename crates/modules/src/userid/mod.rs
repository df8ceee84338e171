//! `userid`: a cookie by which a client is known again.

mod handler;
mod identifier;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `userid`.
pub(crate) const FAMILY: Family = Family {
    name: "userid",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    http: plan::http,
    location: plan::location,
    ..Family::NONE
};
