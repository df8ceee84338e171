//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::Draw;
use super::rows::ROWS;

/// The family of `random_index`.
pub(crate) struct RandomIndex;

impl Family for RandomIndex {
    fn name(&self) -> &'static str {
        "random_index"
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
        if view.flag("random_index") {
            draft.add_handler(HandlerPlace::RandomFile, Arc::new(Draw));
        }
        Ok(())
    }
}
