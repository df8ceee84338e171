//! `turnpike load`: this program, as a separate process on its own CPUs.

use serde_json::Value;

use super::{Order, Reading};
use crate::metric::Figure;
use crate::template::Values;

/// The histogram's file in the driver's folder.
const HISTOGRAM: &str = "driver.hdr";

/// A thread that ran for this share of its time could not have made more load, whatever it shares
/// with.
const RUNNING_SHARE_MAX: f64 = 0.95;

/// Shares of requests, in percent, at which a distribution is kept: enough for a smooth curve.
const PERCENTS: &[f64] = &[
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 93.0, 95.0, 97.0,
    98.0, 99.0, 99.5, 99.7, 99.9, 99.95, 99.97, 99.99,
];

/// Summary fields of the report, and their metrics.
const LATENCIES: &[(&str, &str)] = &[
    ("mean", "latency_mean_us"),
    ("stdev", "latency_stdev_us"),
    ("p50", "latency_p50_us"),
    ("p75", "latency_p75_us"),
    ("p90", "latency_p90_us"),
    ("p99", "latency_p99_us"),
    ("p999", "latency_p999_us"),
];

pub(super) fn words(order: &Order<'_>, arguments: Vec<String>) -> Vec<String> {
    let program = order.values.get("turnpike").cloned().unwrap_or_default();
    let seed = order.values.get("seed").cloned().unwrap_or_default();
    let histogram = order.folder.join(HISTOGRAM).display().to_string();
    let mut words = vec![program, "load".to_owned()];
    words.extend(arguments);
    words.extend([
        "--warmup".to_owned(),
        format!("{}s", order.warmup_s),
        "-d".to_owned(),
        format!("{}s", order.seconds),
        "--seed".to_owned(),
        seed,
        "--max-errors".to_owned(),
        "1000G".to_owned(),
        "--hdr".to_owned(),
        histogram,
        "--quiet".to_owned(),
        "--json".to_owned(),
    ]);
    words
}

/// `requests` of them, however long they take.
pub(super) fn counting_words(
    values: &Values,
    requests: u64,
    arguments: Vec<String>,
) -> Vec<String> {
    let mut words = vec![
        values.get("turnpike").cloned().unwrap_or_default(),
        "load".to_owned(),
    ];
    words.extend(arguments);
    words.extend(["--requests".to_owned(), requests.to_string()]);
    words.extend(["--max-errors", "1000G", "--quiet", "--json"].map(str::to_owned));
    words
}

pub(super) fn read(order: &Order<'_>, output: &str) -> Result<Reading, String> {
    let (mut reading, report) = figures(output)?;
    reading.limited = Some(limited(order, &report));
    reading.distribution = distribution(order).unwrap_or_default();
    Ok(reading)
}

/// The figures of a report, and the report.
pub(super) fn figures(output: &str) -> Result<(Reading, Value), String> {
    let report: Value =
        serde_json::from_str(output).map_err(|error| format!("no report: {error}"))?;
    let mut reading = Reading::default();
    let answered = report["requests"]["answered"].as_f64().unwrap_or_default();
    for (name, value) in [
        ("requests_per_s", report["requests_per_s"].as_f64()),
        ("errors", report["errors_total"].as_f64()),
        (
            "bits_per_s",
            report["bytes_per_s"].as_f64().map(|bytes| bytes * 8.0),
        ),
    ] {
        reading.set(
            name,
            value.ok_or_else(|| format!("the report has no {name}"))?,
        );
    }
    let opened = report["connection_counts"]["opened"].as_f64();
    let all = answered + report["requests"]["warmup"].as_f64().unwrap_or_default();
    let rate = report["requests_per_s"].as_f64().unwrap_or_default();
    if let Some(opened) = opened
        && all > 0.0
    {
        // Connections are counted from the start, warm-up included.
        reading.set("connections_per_s", opened / all * rate);
    }
    for (field, name) in LATENCIES {
        let figure = match report["latency_us"][field].as_f64() {
            Some(value) if answered > 0.0 => Figure::Value(value),
            _ => Figure::Missing("no request was answered".to_owned()),
        };
        reading.figures.insert((*name).to_owned(), figure);
    }
    Ok((reading, report))
}

/// Why the driver was the limit. On CPUs that it shares with the server its threads wait for the
/// server's to run; that is the machine's limit, and the report shows it. The driver is the limit
/// if it hardly ever waits.
fn limited(order: &Order<'_>, report: &Value) -> Option<String> {
    let limits = report["client_limits"].as_array()?;
    let counts = |limit: &&Value| limit["reason"] != "cpu" || !order.is_shared;
    let texts: Vec<&str> = limits
        .iter()
        .filter(counts)
        .filter_map(|limit| limit["text"].as_str())
        .collect();
    let threads = report["thread_reports"].as_array();
    let runs = threads
        .into_iter()
        .flatten()
        .any(|thread| thread["running_share"].as_f64().unwrap_or_default() >= RUNNING_SHARE_MAX);
    match (texts.is_empty(), order.is_shared && runs) {
        (false, _) => Some(texts.join("; ")),
        (true, true) => Some("a thread of the driver ran all the time".to_owned()),
        (true, false) => None,
    }
}

fn distribution(order: &Order<'_>) -> Result<Vec<(f64, f64)>, String> {
    let values = turnpike_load::percentiles(&order.folder.join(HISTOGRAM), "latency", PERCENTS)?;
    let points = PERCENTS.iter().copied().zip(values);
    Ok(points
        .map(|(percent, ns)| (percent, ns as f64 / 1e3))
        .collect())
}
