//! `slice`: a large response is asked for in parts, each of which a cache keeps under a key of its
//! own (`$slice_range`), and put together again.
//!
//! The first part answers the request itself; the others are subrequests in the same location, one
//! after the other, each once the client has taken the one before it.

mod body;
mod handler;
mod part;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `slice`.
pub(crate) const FAMILY: Family = Family {
    name: "slice",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || variables::ROWS,
    location: |view, _, draft| plan::location(view, draft),
    ..Family::NONE
};
