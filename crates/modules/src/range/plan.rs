//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::RangeFilter;
use super::rows::ROWS;

/// Ranges, by `max_ranges`.
pub(crate) struct Ranges;

impl Family for Ranges {
    fn name(&self) -> &'static str {
        "range"
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
        let ranges_max = view
            .nearest("max_ranges")
            .map(|_| view.number("max_ranges") as u64);
        let filter = RangeFilter { ranges_max };
        draft.add_filter(FilterPlace::Range, Arc::new(filter));
        Ok(())
    }
}
