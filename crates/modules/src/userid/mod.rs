//! `userid`: a cookie by which a client is known again.

mod handler;
mod identifier;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `userid`.
pub(crate) struct UserId;

impl Family for UserId {
    fn name(&self) -> &'static str {
        "userid"
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

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::http(view, builder)
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
