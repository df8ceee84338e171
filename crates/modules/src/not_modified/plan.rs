//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::Conditions;

/// Conditional requests. `if_modified_since` and `etag` are the core's directives.
pub(crate) struct NotModified;

impl Family for NotModified {
    fn name(&self) -> &'static str {
        "not_modified"
    }

    fn rows(&self) -> &'static [Row] {
        &[]
    }

    fn location(
        &self,
        _view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        draft.add_filter(FilterPlace::NotModified, Arc::new(Conditions));
        Ok(())
    }
}
