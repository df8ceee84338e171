//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::StaticFile;
use super::rows::ROWS;
use crate::files::Files;

/// Files: every location has them. `root` and `types` are the core's, since it names files itself.
pub(crate) struct StaticFiles;

impl Family for StaticFiles {
    fn name(&self) -> &'static str {
        "static"
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
        let files = Files::of(view, builder)?;
        draft.add_handler(HandlerPlace::File, Arc::new(StaticFile { files }));
        Ok(())
    }
}
