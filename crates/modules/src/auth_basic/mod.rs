//! `auth_basic`: who may, by name and password (RFC 7617).

mod handler;
mod password;
mod plan;
mod remembered;
mod rows;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

pub(crate) struct AuthBasic;

impl Family for AuthBasic {
    fn name(&self) -> &'static str {
        "auth_basic"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        plan::location(view, builder, draft)
    }
}
