//! The view of the requests in progress.

use serde_json::Value;

use super::lists::{Column, number, table, text};
use super::units::milliseconds;

/// Requests: a row a request, the oldest first.
pub(super) fn requests(answer: &Value) -> Option<String> {
    if let Some(closed) = answer["closed"].as_str() {
        return Some(format!("request {closed} is closed\n"));
    }
    let rows = answer["requests"].as_array()?;
    let mut shown = table(COLUMNS, rows, "no requests in progress");
    let more = number(answer, "total").saturating_sub(rows.len() as u64);
    if more > 0 {
        shown += &format!("{more} newer requests are not shown\n");
    }
    for lane in answer["silent_lanes"].as_array()? {
        shown += &format!("lane {lane} does not answer; its requests are not shown\n");
    }
    Some(shown)
}

const COLUMNS: &[Column] = &[
    ("ID", |request| text(request, "id")),
    ("AGE", |request| milliseconds(number(request, "age_ms"))),
    ("CLIENT", |request| text(request, "client")),
    ("METHOD", |request| text(request, "method")),
    ("TARGET", |request| text(request, "target")),
    ("SERVER", |request| text(request, "server")),
    ("UPSTREAM", |request| text(request, "upstream")),
    ("STATE", |request| text(request, "state")),
];
