//! Writes the page.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_plan::metrics::{CONTENT_TYPE, Samples, write_prometheus};

/// The content handler.
pub(super) struct Page;

impl Handler for Page {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        let mut samples = Samples::of(exchange.plan.metric_readers());
        samples.read(&*exchange.lane.all_counters);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write_prometheus(&samples, &mut text);
        let response = &mut exchange.response;
        response.status = 200;
        response.set_content_type(CONTENT_TYPE.as_bytes());
        response.text.clear();
        response.text.extend_from_slice(text.as_bytes());
        response.send_text();
        Verdict::Respond
    }
}
