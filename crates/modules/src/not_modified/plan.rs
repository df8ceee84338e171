//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::Conditions;
use super::rows::ROWS;

/// Conditional requests, by `if_modified_since`.
pub(crate) struct NotModified;

impl Family for NotModified {
    fn name(&self) -> &'static str {
        "not_modified"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let exact = match view.choice("if_modified_since") {
            "off" => None,
            "before" => Some(false),
            _ => Some(true),
        };
        draft.add_filter(FilterPlace::NotModified, Arc::new(Conditions { exact }));
        Ok(())
    }
}
