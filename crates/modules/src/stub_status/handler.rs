//! The page and the variables, summed over all lanes.

use std::io::Write;

use turnpike_http::counters::{Counter, HttpCounters};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::{VariableRow, append_number};

/// The content handler.
pub(super) struct Page;

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "connections_active",
        get: |exchange, out| number(exchange, out, |counters| &counters.active),
        set: None,
        summary: "Open connections.",
    },
    VariableRow {
        name: "connections_reading",
        get: |exchange, out| number(exchange, out, |counters| &counters.reading),
        set: None,
        summary: "Connections whose request head is being read.",
    },
    VariableRow {
        name: "connections_waiting",
        get: |exchange, out| number(exchange, out, |counters| &counters.waiting),
        set: None,
        summary: "Connections that wait for their next request.",
    },
    VariableRow {
        name: "connections_writing",
        get: |exchange, out| number(exchange, out, |counters| &counters.writing),
        set: None,
        summary: "Connections with a request that is being processed or answered.",
    },
];

impl Handler for Page {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.is_get_or_head() {
            return Verdict::Status(exchange.method_refused());
        }
        let sum = |pick: fn(&HttpCounters) -> &Counter| sum(exchange, pick);
        let active = sum(|counters| &counters.active);
        let accepted = sum(|counters| &counters.accepted);
        let handled = sum(|counters| &counters.handled);
        let requests = sum(|counters| &counters.requests);
        let reading = sum(|counters| &counters.reading);
        let writing = sum(|counters| &counters.writing);
        let waiting = sum(|counters| &counters.waiting);
        let response = &mut exchange.response;
        response.set_status(200);
        response.set_content_type(b"text/plain");
        response.text_mut().clear();
        // Writing to a vector cannot fail.
        let _ = write!(
            response.text_mut(),
            "Active connections: {active} \nserver accepts handled requests\n \
             {accepted} {handled} {requests} \n\
             Reading: {reading} Writing: {writing} Waiting: {waiting} \n"
        );
        if let Some(count) = turnpike_lane::allocations() {
            let _ = writeln!(response.text_mut(), "allocations {count}");
        }
        response.send_text();
        Verdict::Respond
    }
}

fn sum(exchange: &Exchange, pick: fn(&HttpCounters) -> &Counter) -> u64 {
    exchange.lane.all_counters.total(pick)
}

fn number(exchange: &Exchange, out: &mut Vec<u8>, pick: fn(&HttpCounters) -> &Counter) -> bool {
    append_number(out, sum(exchange, pick));
    true
}
