//! `limit_req`: how many requests in a time, by a key, as a leaky bucket.
//!
//! The buckets of a zone are shared by all lanes and live on over reloads. A request above the
//! rate is delayed, or refused when even the burst is used up.

mod handler;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod zone;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;
use turnpike_plan::metrics;

pub(crate) struct LimitReq;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

impl Family for LimitReq {
    fn name(&self) -> &'static str {
        "limit_req"
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
        plan::zones(view, builder)?;
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
