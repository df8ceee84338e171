//! wrk's text, to the column, and below it what wrk does not know.

use std::fmt::Write as _;

use crate::histogram::Histogram;
use crate::multiplexed::Protocol;
use crate::options::Options;
use crate::plan::{Pacing, Plan};
use crate::report::limits::{Limit, shares};
use crate::run::Outcome;
use crate::tally::{ErrorClass, ErrorKind, Tally};
use crate::units::{
    counted, format_binary, format_metric, format_time_s, format_time_us, show_bytes, show_time_us,
};

/// The percentiles wrk prints.
const PERCENTILES: [f64; 4] = [50.0, 75.0, 90.0, 99.0];
/// The percentiles of the parts of a transaction.
const DETAIL_PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// The lines before the run.
pub(crate) fn head(plan: &Plan, options: &Options) -> String {
    let first = options.urls.first().cloned();
    let place = first.unwrap_or_else(|| {
        plan.targets
            .endpoints
            .first()
            .map_or_else(String::new, |e| format!("http://{}/", e.label))
    });
    let what = match (plan.duration, plan.requests) {
        (Some(duration), _) => format_time_s(duration.as_secs_f64()),
        (None, Some(requests)) => format!("{requests} requests"),
        (None, None) => String::new(),
    };
    let streams = counted(plan.pipeline, "stream");
    let protocol = match plan.protocol {
        Protocol::Http1 => String::new(),
        Protocol::Http2 => format!(" with {streams} each (HTTP/2)"),
        Protocol::Http3 => format!(" with {streams} each (HTTP/3)"),
    };
    format!(
        "Running {what} test @ {place}\n  {} threads and {} connections{protocol}\n",
        plan.threads, plan.connections
    )
}

/// The lines after the run: wrk's, then what it does not know.
pub(crate) fn body(plan: &Plan, options: &Options, outcome: &Outcome, limits: &[Limit]) -> String {
    let mut text = wrk_body(
        &outcome.tally,
        outcome.measured.as_secs_f64(),
        match (options.percentiles.as_slice(), options.latency) {
            ([], true) => &PERCENTILES,
            (asked, _) => asked,
        },
    );
    if options.histogram {
        text.push_str(&histogram(&outcome.tally.latency));
    }
    errors(&mut text, &outcome.tally);
    if options.detail {
        detail(&mut text, plan, outcome);
    }
    for limit in limits {
        let _ = writeln!(text, "{}: {limit}", limit.label());
    }
    if outcome.interrupted {
        text.push_str("Interrupted: figures so far\n");
    }
    text
}

/// Exactly what wrk prints.
pub(crate) fn wrk_body(tally: &Tally, seconds: f64, percentiles: &[f64]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "  Thread Stats{:>6}{:>11}{:>8}{:>12}",
        "Avg", "Stdev", "Max", "+/- Stdev"
    );
    stats_line(&mut text, "Latency", &tally.latency, |ns| {
        format_time_us(ns / 1e3)
    });
    stats_line(&mut text, "Req/Sec", &tally.rates, format_metric);
    if !percentiles.is_empty() {
        text.push_str("  Latency Distribution\n");
        for percent in percentiles {
            let value = tally.latency.percentile(*percent) as f64 / 1e3;
            let _ = write!(text, "{percent:>7}%");
            units(&mut text, &format_time_us(value), 10);
            text.push('\n');
        }
    }
    let _ = writeln!(
        text,
        "  {} requests in {}, {}B read",
        tally.completed,
        format_time_us(seconds * 1e6),
        format_binary(tally.bytes as f64)
    );
    let of = |class| tally.errors.of_class(class);
    let (connect, read) = (of(ErrorClass::Connect), of(ErrorClass::Read));
    let (write, timeout) = (of(ErrorClass::Write), of(ErrorClass::Timeout));
    if connect + read + write + timeout > 0 {
        let _ = writeln!(
            text,
            "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}"
        );
    }
    let status: u64 = tally.statuses.iter().skip(400).sum();
    if status > 0 {
        let _ = writeln!(text, "  Non-2xx or 3xx responses: {status}");
    }
    let _ = writeln!(
        text,
        "Requests/sec: {:9.2}",
        tally.completed as f64 / seconds
    );
    let per_s = format_binary(tally.bytes as f64 / seconds);
    let _ = writeln!(text, "Transfer/sec: {per_s:>10}B");
    text
}

/// Rows of a histogram: from the shortest answer to the longest, in even steps of a logarithm.
const HISTOGRAM_ROWS: usize = 12;

/// Columns of the longest bar.
const BAR_COLUMNS: f64 = 40.0;

/// How many answers took how long: a row has those up to its time and beyond the one before.
fn histogram(latency: &Histogram) -> String {
    if latency.count() == 0 {
        return String::new();
    }
    let (low, high) = (latency.min().max(1) as f64, latency.max().max(1) as f64);
    let step = (high / low).powf(1.0 / HISTOGRAM_ROWS as f64).max(1.0);
    let mut rows: Vec<(f64, u64)> = Vec::new();
    let mut before = 0;
    for row in 1..=HISTOGRAM_ROWS {
        let bound = match row {
            HISTOGRAM_ROWS => high,
            row => low * step.powi(i32::try_from(row).unwrap_or(i32::MAX)),
        };
        let within = latency
            .buckets()
            .filter(|(value, _)| *value as f64 <= bound);
        let count: u64 = within.map(|(_, count)| count).sum();
        rows.push((bound, count.saturating_sub(before)));
        before = count;
    }
    let most = rows
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    let mut text = "  Latency Histogram\n".to_owned();
    for (bound, count) in rows {
        let bar = "#".repeat((count as f64 / most * BAR_COLUMNS).ceil() as usize);
        let time = show_time_us(bound / 1e3);
        let _ = writeln!(
            text,
            "  {}",
            format!("{time:>10} {count:>10} {bar}").trim_end()
        );
    }
    text
}

fn stats_line(text: &mut String, name: &str, values: &Histogram, format: fn(f64) -> String) {
    let _ = write!(text, "    {name:<10}");
    units(text, &format(values.mean()), 8);
    units(text, &format(values.deviation()), 10);
    units(text, &format(values.max() as f64), 9);
    let _ = writeln!(text, "{:8.2}%", values.within_deviation_percent());
}

/// A number right-aligned on its digits: up to two letters of unit stand in the last columns.
fn units(text: &mut String, number: &str, width: usize) {
    let bytes = number.as_bytes();
    let letter = |back: usize| {
        bytes
            .len()
            .checked_sub(back)
            .and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_alphabetic)
    };
    let pad = 2 - usize::from(letter(1)) - usize::from(letter(2));
    let width = width - pad;
    let shown = number.get(..width).unwrap_or(number);
    let _ = write!(text, "{shown:>width$}{:pad$}", "");
}

/// Errors by kind, where there are any.
fn errors(text: &mut String, tally: &Tally) {
    let seen = ErrorKind::ALL
        .iter()
        .filter(|kind| tally.errors.of(**kind) > 0);
    let list: Vec<String> = seen
        .map(|kind| format!("{} {}", kind.name(), tally.errors.of(*kind)))
        .collect();
    if !list.is_empty() {
        let _ = writeln!(text, "Errors by kind: {}", list.join(", "));
    }
}

pub(crate) fn detail(text: &mut String, plan: &Plan, outcome: &Outcome) {
    let tally = &outcome.tally;
    let parts = [
        ("Connect", &tally.connect),
        ("TLS", &tally.tls),
        ("First byte", &tally.first_byte),
        ("Last byte", last_byte(plan.pacing, tally)),
        ("Late start", &tally.lag),
    ];
    text.push_str("Parts of a transaction:     count       p50       p90       p99     p99.9\n");
    for (name, histogram) in parts.iter().filter(|(_, histogram)| histogram.count() > 0) {
        let _ = write!(text, "  {name:<20}{:>11}", histogram.count());
        for percent in DETAIL_PERCENTILES {
            let value = histogram.percentile(percent) as f64 / 1e3;
            let _ = write!(text, "{:>10}", show_time_us(value));
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "Requests: {} started, {} answered, {} in warm-up, {} failed, {} abandoned, {} unsent",
        tally.issued, tally.completed, tally.warmup, tally.failed, tally.abandoned, tally.unsent
    );
    let _ = writeln!(
        text,
        "Connections: {} opened, {} open at most, {} closed by the server between requests, \
         {} TLS sessions resumed",
        tally.connections, outcome.open_max, tally.closed_between, tally.resumed
    );
    if plan.protocol == Protocol::Http3 {
        let _ = writeln!(
            text,
            "Early data: accepted from {} connections",
            tally.early_data
        );
    }
    for (index, thread) in outcome.threads.iter().enumerate() {
        let (running, queued) = shares(thread);
        let per_request = thread.time.running_ns as f64 / 1e3 / thread.completed.max(1) as f64;
        let _ = writeln!(
            text,
            "Thread {index}: {:.1}% on a CPU, {:.1}% waiting for one, {per_request:.2} us of CPU \
             per request",
            running * 100.0,
            queued * 100.0
        );
    }
    machine(text, outcome);
}

fn machine(text: &mut String, outcome: &Outcome) {
    let (before, after) = (&outcome.before, &outcome.after);
    let _ = writeln!(
        text,
        "TIME_WAIT: {} before, {} after; ports {}-{}; tcp_tw_reuse {}; SYN retransmits {}; \
         listen drops {}",
        before.time_wait,
        after.time_wait,
        outcome.machine.ports.0,
        outcome.machine.ports.1,
        outcome.machine.tcp_tw_reuse,
        after.syn_retransmits.saturating_sub(before.syn_retransmits),
        after.listen_drops.saturating_sub(before.listen_drops)
    );
    let (bytes, each) = memory(outcome);
    let _ = writeln!(
        text,
        "Memory: {} more than before the run, {each} bytes a connection",
        show_bytes(bytes as f64)
    );
}

/// Memory the run took, in bytes, in all and by connection.
pub(crate) fn memory(outcome: &Outcome) -> (u64, u64) {
    let bytes = outcome
        .peak
        .resident_bytes
        .saturating_sub(outcome.before.resident_bytes);
    (bytes, bytes / outcome.open_max.max(1))
}

/// In a closed loop the latency is the time to the last byte, and is counted once.
pub(crate) fn last_byte(pacing: Pacing, tally: &Tally) -> &Histogram {
    if pacing == Pacing::Closed {
        &tally.latency
    } else {
        &tally.last_byte
    }
}

#[cfg(test)]
mod tests;
