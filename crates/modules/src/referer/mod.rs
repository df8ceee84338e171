//! `valid_referers`: whether the page that led to a request is a welcome one.
//!
//! The family only defines `$invalid_referer`; what follows from it is the configuration's.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use plan::{ByLocation, Referers};

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

pub(crate) struct Referer;

impl Family for Referer {
    fn name(&self) -> &'static str {
        "referer"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        let evaluate = Arc::new(builder.store::<ByLocation>().clone());
        builder
            .variables
            .define_computed("invalid_referer", evaluate)
            .map_err(|message| view.error(view.span(), message))?;
        Ok(())
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        if let Some(referers) = Referers::read(view, &mut builder.variables.programs)? {
            builder.store::<ByLocation>().insert(draft.index, referers);
        }
        Ok(())
    }
}
