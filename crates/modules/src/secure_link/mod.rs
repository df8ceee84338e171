//! `secure_link`: whether a link carries a signature that its maker could give it, and still holds.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

pub(crate) const FAMILY: Family = Family {
    name: "secure_link",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    http: plan::variables,
    location: plan::location,
    ..Family::NONE
};
