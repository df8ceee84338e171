//! `ssi`: commands in a response's text, such as the inclusion of another response.
//!
//! ```text
//!  response's body ─► template parser (wire::ssi) ─┬─► text ─────────────────────┐
//!                                                  └─► command ─► page ─┬─► text ─┴─► client
//!                                                                       └─► subrequest ─► its body
//! ```
//!
//! Parts are asked for one after another, each when its place in the page is reached.

mod body;
mod command;
mod expression;
mod handler;
mod page;
mod patterns;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `ssi`.
pub(crate) const FAMILY: Family = Family {
    name: "ssi",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
