//! `add_header` and `expires`: fields that the configuration adds to responses.
//!
//! The family only adds to a response that is made; it must not decide what is answered.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family.
pub(crate) struct Headers;

impl Family for Headers {
    fn name(&self) -> &'static str {
        "headers"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let added = plan::Added::read(view, builder)?;
        if !added.is_empty() {
            draft.add_filter(FilterPlace::Headers, Arc::new(added));
        }
        Ok(())
    }
}
