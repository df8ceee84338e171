//! What the directive of this family means for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::{FilterPlace, HandlerPlace};
use turnpike_http::plan::LocationDraft;

use super::handler::{FirstPart, Parts};

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    let size_bytes = view.size("slice");
    if size_bytes > 0 {
        draft.add_handler(HandlerPlace::FirstPart, Arc::new(FirstPart { size_bytes }));
        draft.add_filter(FilterPlace::Parts, Arc::new(Parts { size_bytes }));
    }
    Ok(())
}
