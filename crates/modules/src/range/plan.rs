//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::LocationDraft;

use super::handler::RangeFilter;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    let ranges_max = view
        .nearest("max_ranges")
        .map(|_| view.number("max_ranges") as u64);
    let filter = RangeFilter { ranges_max };
    draft.add_filter(FilterPlace::Range, Arc::new(filter));
    Ok(())
}
