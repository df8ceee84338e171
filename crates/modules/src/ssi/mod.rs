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

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `ssi`.
pub(crate) struct Ssi;

impl Family for Ssi {
    fn name(&self) -> &'static str {
        "ssi"
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
