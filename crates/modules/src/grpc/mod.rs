//! `grpc_pass`: requests are passed to gRPC servers, over HTTP/2.
//!
//! The family reads its directives. Requests are written and answers read by the origin of HTTP,
//! with the ways of gRPC: nothing is buffered, and trailers are always passed on.

mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[
    ReferenceText::new(include_str!("reference.md")),
    ReferenceText::shared(
        crate::pass::REFERENCE,
        &[
            ("PREFIX", "grpc"),
            ("ADDRESS", "127.0.0.1:3000"),
            ("GROUP", "application"),
        ],
    ),
    ReferenceText::shared(
        crate::pass::TLS_REFERENCE,
        &[("PREFIX", "grpc"), ("ADDRESS", "grpcs://127.0.0.1:3443")],
    ),
];

/// The family of `grpc_pass`.
pub(crate) const FAMILY: Family = Family {
    name: plan::PREFIX,
    rows: rows::ROWS,
    reference: REFERENCE,
    is_silent_unless_written: true,
    variables: || variables::ROWS,
    location: plan::location,
    ..Family::NONE
};
