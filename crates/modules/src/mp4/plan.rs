//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};

use super::handler::Films;
use crate::common::content_directive;
use crate::common::files::Files;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if content_directive::in_force(view, "mp4").is_some() {
        let films = Films {
            files: Files::of(view, builder)?,
            index_bytes_max: view.size("mp4_max_buffer_size"),
            from_key_frame: view.flag("mp4_start_key_frame"),
        };
        draft.add_handler(HandlerPlace::Answer, Arc::new(films));
    }
    Ok(())
}
