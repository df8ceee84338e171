//! `index`: the file that stands for a folder.
//!
//! The handler only finds the file's path; the request goes on with that path, and may so meet
//! another location.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `index`.
pub(crate) const FAMILY: Family = Family {
    name: "index",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
