//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::Films;
use super::rows::ROWS;
use crate::files::Files;

/// The family of `mp4`.
pub(crate) struct Mp4;

impl Family for Mp4 {
    fn name(&self) -> &'static str {
        "mp4"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        if view.own("mp4").is_some() {
            let films = Films {
                files: Files::of(view, builder)?,
                index_bytes_max: view.size("mp4_max_buffer_size"),
                from_key_frame: view.flag("mp4_start_key_frame"),
            };
            draft.add_handler(HandlerPlace::Answer, Arc::new(films));
        }
        Ok(())
    }
}
