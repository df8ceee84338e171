//! `auth_request`: another location says who may, by the status of its answer.
//!
//! The question is a subrequest: the head of the request without its body. Nothing of the answer
//! but its status, its challenge and what `auth_request_set` takes of it is used.

mod handler;
mod plan;
mod rows;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `auth_request`.
pub(crate) const FAMILY: Family = Family {
    name: "auth_request",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    location: plan::location,
    ..Family::NONE
};
