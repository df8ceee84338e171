//! `health`: tells a load balancer whether to send more requests.

use std::sync::Arc;

use turnpike_conf::{
    Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, Value, View,
};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::response::Body;

use crate::common::content_directive;

const ROWS: &[Row] = &[Row {
    name: "health",
    contexts: &[Context::Location],
    arguments: Arguments::none(),
    value: Value::Custom,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "",
    default: "",
    summary: "Answers 200 while the server takes requests, and 503 as soon as a drain begins, \
        with or without `shutdown_delay`: a readiness check for load balancers and orchestrators.",
}];

/// The family of `health`.
pub(crate) const FAMILY: Family = Family {
    name: "health",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("health/reference.md"))],
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    _builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if let Some((_, is_own)) = content_directive::in_force(view, "health") {
        draft.set_content(Arc::new(Readiness), is_own);
    }
    Ok(())
}

/// Answers whether the lane still takes requests. It differs from request to request, so neither
/// the express lane nor a cache may keep it.
struct Readiness;

impl Handler for Readiness {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        let (status, text): (u16, &'static [u8]) = if exchange.lane.shutdown.is_draining() {
            (503, b"draining\n")
        } else {
            (200, b"ok\n")
        };
        let response = &mut exchange.response;
        response.set_status(status);
        response.set_content_type(b"text/plain");
        response.set_content_length(Some(text.len() as u64));
        response.set_body(Body::Static(text));
        Verdict::Respond
    }
}
