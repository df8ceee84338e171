//! `auth_request`: another location says who may, by the status of its answer.
//!
//! The question is a subrequest: the head of the request without its body. Nothing of the answer
//! but its status, its challenge and what `auth_request_set` takes of it is used.

mod handler;
mod plan;
mod rows;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family of `auth_request`.
pub(crate) struct AuthRequest;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for AuthRequest {
    fn name(&self) -> &'static str {
        "auth_request"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
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
