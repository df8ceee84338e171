//! `autoindex`: a folder's list of entries, as a page or as data.
//!
//! The folder is read while the lane waits, as with nginx: listings are for people, not for load.

mod data;
mod handler;
mod page;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `autoindex`.
pub(crate) const FAMILY: Family = Family {
    name: "autoindex",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
