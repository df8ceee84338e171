//! `otel_trace` and its like, with the names of nginx's OpenTelemetry module: spans of requests,
//! and the trace context that is passed on (W3C Trace Context).
//!
//! ```text
//!  request ─► traceparent read, ids made ─► traceparent for upstream servers
//!     │
//!     └─ end ─► span (protobuf) ─► queue ─► batches, off the lanes ─► collector (OTLP)
//! ```
//!
//! A lane never waits for a collector: it puts a span into a bounded queue, or drops it.

mod context;
mod exporter;
mod handler;
mod message;
mod plan;
mod rows;
mod sender;
#[cfg(test)]
mod tests;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::VariableRow;

/// What people wrote about the directives.
const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The family of `otel_trace`.
pub(crate) struct OpenTelemetry;

impl Family for OpenTelemetry {
    fn name(&self) -> &'static str {
        "otel"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn reference(&self) -> &'static [ReferenceText] {
        REFERENCE
    }

    fn variables(&self) -> &'static [VariableRow] {
        handler::VARIABLES
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
