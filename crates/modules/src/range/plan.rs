//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::RangeFilter;

/// Ranges. `max_ranges` is the core's directive.
pub(crate) struct Ranges;

impl Family for Ranges {
    fn name(&self) -> &'static str {
        "range"
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
        draft.add_filter(FilterPlace::Range, Arc::new(RangeFilter));
        Ok(())
    }
}
