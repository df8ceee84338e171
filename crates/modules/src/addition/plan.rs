//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::LocationDraft;

use super::handler::AdditionFilter;
use crate::common::content_types::Types;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    let path = |name: &str| -> Option<Arc<[u8]>> {
        let path = view.try_text(name).filter(|path| !path.is_empty())?;
        Some(path.as_bytes().into())
    };
    let filter = AdditionFilter {
        before: path("add_before_body"),
        after: path("add_after_body"),
        types: Types::read(view, "addition_types", &["text/html"]),
    };
    if filter.before.is_some() || filter.after.is_some() {
        draft.add_filter(FilterPlace::Add, Arc::new(filter));
    }
    Ok(())
}
