//! `--csv`: the figures of a run as a line under a line of names, for spreadsheets.

use crate::run::Outcome;
use crate::tally::ErrorClass;

/// The percentiles that stand there if no others are asked for.
const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// Names and figures. Times are in microseconds.
pub(crate) fn of_run(outcome: &Outcome, percentiles: &[f64]) -> String {
    let tally = &outcome.tally;
    let seconds = outcome.measured.as_secs_f64();
    let us = |ns: f64| format!("{:.3}", ns / 1e3);
    let of = |class| tally.errors.of_class(class).to_string();
    let mut columns: Vec<(String, String)> = [
        ("seconds", format!("{seconds:.6}")),
        ("requests", tally.completed.to_string()),
        (
            "requests_per_second",
            format!("{:.3}", tally.completed as f64 / seconds),
        ),
        ("bytes", tally.bytes.to_string()),
        ("errors", tally.errors.total().to_string()),
        ("errors_connect", of(ErrorClass::Connect)),
        ("errors_timeout", of(ErrorClass::Timeout)),
        ("latency_mean_us", us(tally.latency.mean())),
        ("latency_stdev_us", us(tally.latency.deviation())),
        ("latency_max_us", us(tally.latency.max() as f64)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let percentiles = match percentiles {
        [] => &PERCENTILES,
        asked => asked,
    };
    for percent in percentiles {
        let value = tally.latency.percentile(*percent) as f64;
        columns.push((format!("latency_p{percent}_us"), us(value)));
    }
    let (names, values): (Vec<String>, Vec<String>) = columns.into_iter().unzip();
    format!("{}\n{}\n", names.join(","), values.join(","))
}
