//! `sub_filter`: strings of a response's text that are replaced by others.
//!
//! All strings of a location are looked for at once. Where several begin at one place, the first in
//! the configuration counts.

mod body;
mod handler;
mod plan;
mod rows;
mod strings;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `sub_filter`.
pub(crate) const FAMILY: Family = Family {
    name: "sub_filter",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
