//! `express`: small, hot answers go on to the network driver, which answers the next requests for
//! them without a socket (`turnpike_express`).
//!
//! A lane that has answered a request publishes the answer, where it would be the same for every
//! client. It is sent from the driver until the second ends that its Date names; then the next
//! request reaches a lane again. So no answer outlives a change by more than a second, whatever has
//! changed, and no Date is wrong.
//!
//! `express_log`: of some of these requests lanes write lines of access logs.
//!
//! `express_drop`: clients that were refused too often for their address are dropped there.

mod drops;
mod eligible;
mod handler;
mod metrics;
mod plan;
mod rows;
mod samples;
mod syn;
mod watch;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `express`.
pub(crate) struct Express;

impl Family for Express {
    fn name(&self) -> &'static str {
        "express"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        samples::VARIABLES
    }

    fn metrics(&self) -> &'static [turnpike_plan::metrics::Row] {
        metrics::METRICS
    }

    fn http(&self, view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
        plan::http(view, builder)
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
