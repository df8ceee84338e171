//! `allow` and `deny`: who may, by address.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

/// The family.
pub struct Access;

impl Family for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        _builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, draft)
    }
}
