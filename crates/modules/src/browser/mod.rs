//! `modern_browser`, `ancient_browser`: what a User-Agent says about a browser's age, in variables.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

pub(crate) struct Browser;

impl Family for Browser {
    fn name(&self) -> &'static str {
        "browser"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        handler::VARIABLES
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
        plan::location(view, builder, draft);
        Ok(())
    }
}
