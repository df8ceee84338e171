//! `metric_zone`: metrics of the configuration's own, by key, as in Angie.
//!
//! A zone keeps the values of each key, whatever the key is made of, in the modes that it names:
//! counts, extremes, sums, averages, histograms. All lanes share it, and it lives on over reloads.
//! Metrics are updated where the directive says so, or by `set` of a variable. Nothing is counted
//! where neither stands.

mod handler;
mod memory;
mod mode;
mod plan;
mod reader;
mod rows;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod variables;
mod zone;

use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, View};
use turnpike_http::phase::{FilterPlace, HandlerPlace};
use turnpike_http::plan::{Builder, Family, LocationDraft};

use handler::{Stages, Updates};

/// When `metric` updates a metric of a request.
const STAGES: Stages = Stages(["request", "response", "end"]);

pub(crate) const FAMILY: Family = Family {
    name: "metric_zone",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    metrics: reader::METRICS,
    is_silent_unless_written: true,
    http: |view, builder| plan::zones(view, builder, "metric_zone", reader::HTTP_ROWS),
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let Some(updates) = Updates::in_force(view, builder, STAGES)? else {
        return Ok(());
    };
    let updates = Arc::new(updates);
    // Even where it has nothing to do before the content: what it counts, a lane must answer.
    draft.add_handler(HandlerPlace::Metrics, updates.clone());
    draft.add_filter(FilterPlace::Metrics, updates.clone());
    draft.add_logger(updates);
    Ok(())
}
