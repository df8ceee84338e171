//! `try_files`: the first of several files or folders that is there, else a last resort.
//!
//! The handler only chooses the path; another handler answers with it.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `try_files`.
pub(crate) const FAMILY: Family = Family {
    name: "try_files",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
