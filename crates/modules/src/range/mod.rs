//! Parts of a body (RFC 9110 section 14): one range, several as multipart/byteranges, or 416.
//!
//! Every location has this filter. It is the last that sees a response, so that ranges are of what
//! is really sent.

mod body;
mod handler;
mod parse;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// Ranges, by `max_ranges`.
pub(crate) const FAMILY: Family = Family {
    name: "range",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: |view, _, draft| plan::location(view, draft),
    ..Family::NONE
};
