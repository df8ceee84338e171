//! `addition`: what other locations answer, before and after the body of a response.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `add_before_body` and `add_after_body`.
pub(crate) const FAMILY: Family = Family {
    name: "addition",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    location: |view, _, draft| plan::location(view, draft),
    ..Family::NONE
};
