//! `more_set_headers` and its like, as in the module headers-more: fields of responses and requests
//! are set or taken away, those included that the server makes itself.
//!
//! Fields that say where a message ends, and fields of the connection, belong to the protocol and
//! cannot be changed.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `more_set_headers`.
pub(crate) const FAMILY: Family = Family {
    name: "more_headers",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    is_silent_unless_written: true,
    location: plan::location,
    ..Family::NONE
};
