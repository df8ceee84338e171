//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::Pixel;
use super::rows::ROWS;

/// The family of `empty_gif`.
pub(crate) struct EmptyGif;

impl Family for EmptyGif {
    fn name(&self) -> &'static str {
        "empty_gif"
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
        if view.own("empty_gif").is_some() {
            draft.content = Some(Arc::new(Pixel));
        }
        Ok(())
    }
}
