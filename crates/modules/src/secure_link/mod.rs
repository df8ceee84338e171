//! `secure_link`: whether a link carries a signature that its maker could give it, and still holds.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

pub(crate) struct SecureLink;

impl Family for SecureLink {
    fn name(&self) -> &'static str {
        "secure_link"
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
        plan::variables(view, builder)
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
