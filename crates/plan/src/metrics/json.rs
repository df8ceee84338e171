//! Samples as JSON, for our own programs: the status page and `turnpike top`.

use serde_json::{Map, Value as Json, json};
use turnpike_lane::counters::BOUNDS_NS;

use super::{Kind, Sample, Samples, Value};

/// All samples as an object: `unix_ms`, the bounds of histograms in seconds (`bounds_s`), and
/// `metrics`, a list of rows with their samples. Names are those of the table, without a prefix.
pub fn write(samples: &Samples, unix_ms: u64) -> Json {
    let mut rows: Vec<Json> = Vec::new();
    let mut places = std::collections::HashMap::<&str, usize>::new();
    for sample in samples.list() {
        let place = *places.entry(sample.row.name).or_insert_with(|| {
            let kind = match sample.row.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
                Kind::Ranking => "ranking",
            };
            let (name, unit) = (sample.row.name, sample.row.unit);
            rows.push(json!({ "name": name, "kind": kind, "unit": unit, "samples": [] }));
            rows.len() - 1
        });
        if let Some(samples) = rows[place]["samples"].as_array_mut() {
            samples.push(one(sample));
        }
    }
    let bounds_s: Vec<f64> = BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).collect();
    json!({ "unix_ms": unix_ms, "bounds_s": bounds_s, "metrics": rows })
}

/// A histogram of times has a count for each bound, of the times above the previous bound and up to
/// this one, and a count of the times above the last. One with bounds of its own names them, and
/// counts all values up to each.
fn one(sample: &Sample) -> Json {
    let labels = sample.labels.iter();
    let labels: Map<String, Json> = labels
        .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
        .collect();
    match &sample.value {
        Value::Number(number) => json!({ "labels": labels, "value": number }),
        Value::Real(number) => json!({ "labels": labels, "value": number }),
        Value::Distribution(times) => {
            let sum_s = times.sum_ns as f64 / 1e9;
            json!({ "labels": labels, "buckets": times.buckets, "sum_s": sum_s })
        }
        Value::Buckets(own) => json!({
            "labels": labels,
            "bounds": own.bounds,
            "up_to_bounds": own.counts,
            "count": own.count,
            "sum": own.sum,
        }),
    }
}
