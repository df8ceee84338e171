//! The certificates in use, as their metrics tell of them.

use serde_json::{Value, json};
use turnpike_lane::sys::process::unix_ms;
use turnpike_plan::metrics::{self, Samples};

/// The metric that has the end of each certificate.
const EXPIRY: &str = "certificate_expiry_timestamp_seconds";

const DAY_S: i64 = 24 * 60 * 60;

/// Every certificate, the first to expire first.
pub(super) fn list(samples: &Samples) -> Value {
    json!({ "certificates": sorted(samples) })
}

/// The certificate that expires first; null if there is none.
pub(super) fn first(samples: &Samples) -> Value {
    sorted(samples).into_iter().next().unwrap_or_default()
}

fn sorted(samples: &Samples) -> Vec<Value> {
    let now_s = i64::try_from(unix_ms() / 1000).unwrap_or(i64::MAX);
    let list = samples.list().iter();
    let ends = list.filter(|sample| sample.row.name == EXPIRY);
    let mut found: Vec<(i64, Value)> = ends
        .filter_map(|sample| {
            let metrics::Value::Number(end_s) = sample.value else {
                return None;
            };
            let end_s = i64::try_from(end_s).ok()?;
            let certificate = json!({
                "certificate": sample.label("certificate"),
                "names": sample.label("names"),
                "expires_unix_s": end_s,
                "days_left": (end_s - now_s).div_euclid(DAY_S),
            });
            Some((end_s, certificate))
        })
        .collect();
    found.sort_by_key(|(end_s, _)| *end_s);
    found
        .into_iter()
        .map(|(_, certificate)| certificate)
        .collect()
}
