//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::LocationDraft;

use super::handler::Draw;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    if view.flag("random_index") {
        draft.add_handler(HandlerPlace::RandomFile, Arc::new(Draw));
    }
    Ok(())
}
