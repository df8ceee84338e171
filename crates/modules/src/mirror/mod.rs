//! `mirror`: copies of a request for other locations, whose answers nobody waits for.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `mirror`.
pub(crate) const FAMILY: Family = Family {
    name: "mirror",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: |view, _, draft| plan::location(view, draft),
    ..Family::NONE
};
