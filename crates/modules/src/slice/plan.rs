//! What the directive of this family means for a location.

use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::phase::{FilterPlace, HandlerPlace};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

use super::handler::{FirstPart, Parts};
use super::{rows, variables};

/// The family of `slice`.
pub(crate) struct Slice;

impl Family for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn variables(&self) -> &'static [VariableRow] {
        variables::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let size_bytes = view.size("slice");
        if size_bytes > 0 {
            draft.add_handler(HandlerPlace::FirstPart, Arc::new(FirstPart { size_bytes }));
            draft.add_filter(FilterPlace::Parts, Arc::new(Parts { size_bytes }));
        }
        Ok(())
    }
}
