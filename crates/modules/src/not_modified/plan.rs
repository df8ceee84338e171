//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::LocationDraft;

use super::handler::Conditions;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    let exact = match view.choice("if_modified_since") {
        "off" => None,
        "before" => Some(false),
        _ => Some(true),
    };
    draft.add_filter(FilterPlace::NotModified, Arc::new(Conditions { exact }));
    Ok(())
}
