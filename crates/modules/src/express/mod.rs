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

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `express`.
pub(crate) const FAMILY: Family = Family {
    name: "express",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || samples::VARIABLES,
    metrics: metrics::METRICS,
    http: plan::http,
    location: plan::location,
    ..Family::NONE
};
