//! `echo` and others of the module of that name: answers that are written in the configuration, for
//! tests and for looking at what a request is.

mod body;
mod copies;
mod handler;
mod plan;
mod rows;
mod variables;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `echo`.
pub(crate) struct Echo;

impl Family for Echo {
    fn name(&self) -> &'static str {
        "echo"
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
        variables::VARIABLES
    }

    fn http(&self, _: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        builder.variables.add_unsettled(variables::CONTENT);
        Ok(())
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
