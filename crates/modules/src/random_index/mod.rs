//! `random_index`: one of a folder's files, by chance.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `random_index`.
pub(crate) const FAMILY: Family = Family {
    name: "random_index",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: |view, _, draft| plan::location(view, draft),
    ..Family::NONE
};
