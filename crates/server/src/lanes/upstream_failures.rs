//! The last failures of upstream servers, as their metrics tell of them.

use serde_json::{Value, json};
use turnpike_lane::sys::process::unix_ms;
use turnpike_plan::metrics::{self, Samples};

/// The metrics that have the last failure of each server, and the mark of their groups.
const FAILURES: [(&str, &str); 2] = [
    ("upstream_last_failure_timestamp_seconds", ""),
    ("stream_upstream_last_failure_timestamp_seconds", "stream:"),
];

/// The failure that came last; null if no server has failed.
pub(super) fn last(samples: &Samples) -> Value {
    let failures = samples.list().iter().filter_map(|sample| {
        let (_, mark) = FAILURES.iter().find(|(row, _)| *row == sample.row.name)?;
        match sample.value {
            metrics::Value::Number(at_s) => Some((at_s, *mark, sample)),
            _ => None,
        }
    });
    let Some((at_s, mark, sample)) = failures.max_by_key(|(at_s, ..)| *at_s) else {
        return Value::Null;
    };
    json!({
        "upstream": format!("{mark}{}", sample.label("upstream")),
        "server": sample.label("peer"),
        "reason": sample.label("reason"),
        "ago_s": (unix_ms() / 1000).saturating_sub(at_s),
    })
}
