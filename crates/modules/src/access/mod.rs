//! `allow` and `deny`: who may, by address.

mod handler;
mod plan;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use turnpike_plan::cidr::warn_of_low_bits;

pub(crate) struct Access;

impl Family for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        warn_of_low_bits(view, builder, &["allow", "deny"]);
        Ok(())
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        warn_of_low_bits(view, builder, &["allow", "deny"]);
        plan::location(view, draft)
    }
}
