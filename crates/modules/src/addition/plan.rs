//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, Family, LocationDraft};

use super::handler::AdditionFilter;
use super::rows::ROWS;
use crate::types::Types;

/// The family of `add_before_body` and `add_after_body`.
pub(crate) struct Addition;

impl Family for Addition {
    fn name(&self) -> &'static str {
        "addition"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        _: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
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
}
