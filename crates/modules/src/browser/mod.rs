//! `modern_browser`, `ancient_browser`: what a User-Agent says about a browser's age, in variables.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

pub(crate) struct Browser;

impl Family for Browser {
    fn name(&self) -> &'static str {
        "browser"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
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
