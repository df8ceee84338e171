//! `limit_conn`: how many requests at the same time, by a key.
//!
//! A request counts from the moment its head was read until it was logged. The counts of a zone
//! are shared by all lanes and live on over reloads, as the requests do that they count.

mod handler;
mod plan;
mod rows;
mod stream;
#[cfg(test)]
mod tests;
mod zone;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;
use turnpike_plan::metrics;

pub(crate) struct LimitConn;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for LimitConn {
    fn name(&self) -> &'static str {
        "limit_conn"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn metrics(&self) -> &'static [metrics::Row] {
        std::slice::from_ref(&handler::REJECTIONS)
    }

    fn variables(&self) -> &'static [VariableRow] {
        handler::VARIABLES
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::zones(view, builder, "limit_conn")?;
        plan::show_rejections(builder);
        Ok(())
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
