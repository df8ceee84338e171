//! `sub_filter`: strings of a response's text that are replaced by others.
//!
//! All strings of a location are looked for at once. Where several begin at one place, the first in
//! the configuration counts.

mod body;
mod handler;
mod plan;
mod rows;
mod strings;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `sub_filter`.
pub(crate) struct SubFilter;

impl Family for SubFilter {
    fn name(&self) -> &'static str {
        "sub_filter"
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
