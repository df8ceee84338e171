//! Conditional requests (RFC 9110 section 13): 304 for what the client has, 412 for what it does
//! not want changed.
//!
//! Every location has this filter. It judges what a handler is about to answer and knows nothing
//! of where that came from.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// Conditional requests, by `if_modified_since`.
pub(crate) const FAMILY: Family = Family {
    name: "not_modified",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: |view, _, draft| plan::location(view, draft),
    ..Family::NONE
};
