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

use turnpike_conf::ReferenceText;
use turnpike_http::plan::Family;

/// The family of `otel_trace`.
pub(crate) const FAMILY: Family = Family {
    name: "otel",
    rows: rows::ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    variables: || handler::VARIABLES,
    http: plan::http,
    location: plan::location,
    ..Family::NONE
};
