//! Writes the page.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_plan::metrics::{Format, Samples, write_prometheus};
use turnpike_plan::protocol::ProtocolPlan as _;

/// What the numbers of lanes become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Numbers of each lane.
    Lane,
    /// The sum over all lanes.
    Total,
}

/// The content handler.
pub(super) struct Page(pub(super) Detail);

impl Handler for Page {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        let mut samples = Samples::of(&exchange.plan.offers().readers);
        samples.read(&*exchange.lane.all_counters);
        if self.0 == Detail::Total {
            samples = samples.summed_over("lane");
        }
        let format = Format::accepted(exchange.field(b"Accept").unwrap_or_default());
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write_prometheus(&samples, format, &mut text);
        let response = &mut exchange.response;
        response.set_status(200);
        response.set_content_type(format.content_type().as_bytes());
        response.text_mut().clear();
        response.text_mut().extend_from_slice(text.as_bytes());
        response.send_text();
        Verdict::Respond
    }
}
