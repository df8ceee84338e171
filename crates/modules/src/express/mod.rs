//! `express`: small, hot answers go on to the network driver, which answers the next requests for
//! them without a socket (`turnpike_express`).
//!
//! A lane that has answered a request publishes the answer, where it would be the same for every
//! client. It is sent from the driver until the second ends that its Date names; then the next
//! request reaches a lane again. So no answer outlives a change by more than a second, whatever has
//! changed, and no Date is wrong.
//!
//! `express_drop`: clients that were refused too often for their address are dropped there.

mod drops;
mod eligible;
mod handler;
mod metrics;
mod plan;
mod rows;

pub(crate) use plan::Express;
