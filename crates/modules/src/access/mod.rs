//! `allow` and `deny`: who may, by address.

mod handler;
mod plan;
mod rows;
mod stream;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use turnpike_plan::cidr::warn_of_low_bits;

pub(crate) struct Access;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for Access {
    fn name(&self) -> &'static str {
        "access"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
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
