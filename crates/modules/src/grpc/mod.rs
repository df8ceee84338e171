//! `grpc_pass`: requests are passed to gRPC servers, over HTTP/2.
//!
//! The family reads its directives. Requests are written and answers read by the origin of HTTP,
//! with the ways of gRPC: nothing is buffered, and trailers are always passed on.

mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod variables;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// The family of `grpc_pass`.
pub(crate) struct Grpc;

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

impl Family for Grpc {
    fn name(&self) -> &'static str {
        plan::PREFIX
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn is_silent_unless_written(&self) -> bool {
        true
    }

    fn variables(&self) -> &'static [VariableRow] {
        variables::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
