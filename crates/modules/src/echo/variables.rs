//! Variables of this family.

use turnpike_http::variables::{VariableRow, append_number};

/// The variables whose values are the request's content.
pub(super) const CONTENT: &[&str] = &["echo_request_body"];

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "echo_client_request_headers",
        get: |exchange, out| {
            out.extend_from_slice(exchange.request().head().line());
            out.extend_from_slice(b"\r\n");
            for (name, value) in exchange.fields().iter() {
                for part in [name, b": ", value, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            }
            true
        },
        set: None,
        summary: "The request line and the fields of the client's request, one per line.",
    },
    VariableRow {
        name: "echo_client_request_method",
        get: |exchange, out| {
            out.extend_from_slice(exchange.request().head().method_text());
            true
        },
        set: None,
        summary: "The method of the client's request. It is the same in subrequests of \
            `echo_location`.",
    },
    VariableRow {
        name: "echo_client_request_uri",
        get: |exchange, out| {
            out.extend_from_slice(exchange.request().head().origin());
            true
        },
        set: None,
        summary: "The path and query of the client's request. They are the same in subrequests of \
            `echo_location`.",
    },
    VariableRow {
        name: "echo_request_method",
        get: |exchange, out| {
            out.extend_from_slice(exchange.method_name());
            true
        },
        set: None,
        summary: "The method of the request, or of the subrequest of `echo_location`.",
    },
    VariableRow {
        name: "echo_request_uri",
        get: |exchange, out| {
            out.extend_from_slice(exchange.walk.path());
            if !exchange.walk.query().is_empty() {
                out.push(b'?');
                out.extend_from_slice(exchange.walk.query());
            }
            true
        },
        set: None,
        summary: "The path and query of the request, or of the subrequest of `echo_location`.",
    },
    VariableRow {
        name: "echo_request_body",
        get: |exchange, out| {
            let content = exchange.used_content();
            out.extend_from_slice(content);
            !content.is_empty()
        },
        set: None,
        summary: "The request body, if it was read and is in memory.",
    },
    VariableRow {
        name: "echo_response_status",
        get: |exchange, out| match exchange.response.status() {
            0 => false,
            status => {
                append_number(out, u64::from(status));
                true
            }
        },
        set: None,
        summary: "The status of the response, once it is known.",
    },
    VariableRow {
        name: "echo_timer_elapsed",
        get: |exchange, out| {
            let now_ms = exchange.lane.clock.now_ms();
            let took_ms = now_ms.saturating_sub(exchange.account.started_ms());
            out.extend_from_slice(format!("{}.{:03}", took_ms / 1000, took_ms % 1000).as_bytes());
            true
        },
        set: None,
        summary: "How long the request has taken so far, in seconds.",
    },
];
