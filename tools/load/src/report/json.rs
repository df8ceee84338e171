//! The JSON report, documented in docs/load.md; a change of a field's meaning changes `schema`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::environment::{Machine, Snapshot};
use crate::histogram::Histogram;
use crate::plan::{Pacing, Plan};
use crate::report::limits::{Limit, shares};
use crate::report::text::{last_byte, memory};
use crate::run::{Outcome, ThreadReport};
use crate::tally::ErrorKind;
use crate::target::Endpoint;

/// The version of the schema.
const SCHEMA: &str = "turnpike-load/1";

/// The whole report.
#[derive(Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    command: Vec<String>,
    started_unix_s: f64,
    threads: usize,
    connections: usize,
    /// The servers, as `https://HOST:PORT`, in the order of the command line.
    servers: Vec<String>,
    /// What starts a request: `answer`, or a schedule of `requests` or `connections`.
    pacing: &'static str,
    /// Of a schedule.
    planned_per_s: Option<f64>,
    /// `http/1.1` or `h2`.
    protocol: &'static str,
    /// Requests under way at once on each connection of HTTP/2.
    streams: usize,
    duration_s: f64,
    interrupted: bool,
    requests: Requests,
    requests_per_s: f64,
    bytes_read: u64,
    bytes_per_s: f64,
    latency_us: Summary,
    parts_us: BTreeMap<&'static str, Summary>,
    connection_counts: Connections,
    errors: BTreeMap<&'static str, u64>,
    errors_total: u64,
    statuses: BTreeMap<String, u64>,
    client_limited: bool,
    client_limits: Vec<LimitReport>,
    thread_reports: Vec<ThreadLine>,
    series: Series,
    memory: Memory,
    machine: Machine,
    before: Snapshot,
    after: Snapshot,
}

#[derive(Serialize)]
struct Requests {
    started: u64,
    answered: u64,
    warmup: u64,
    failed: u64,
    abandoned: u64,
    unsent: u64,
}

#[derive(Serialize)]
struct Connections {
    opened: u64,
    open_max: u64,
    closed_between: u64,
    tls_resumed: u64,
    early_data: u64,
    planned_new_share: Option<f64>,
}

#[derive(Serialize)]
struct LimitReport {
    reason: &'static str,
    text: String,
}

#[derive(Serialize)]
struct ThreadLine {
    started: u64,
    answered: u64,
    running_share: f64,
    awake_share: f64,
    queued_share: f64,
    user_us: u64,
    system_us: u64,
}

/// Figures over time, a value for each interval.
#[derive(Serialize, Default)]
struct Series {
    interval_s: f64,
    answered: Vec<u64>,
    failed: Vec<u64>,
    p50_us: Vec<Option<f64>>,
    p99_us: Vec<Option<f64>>,
    max_us: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct Memory {
    run_bytes: u64,
    connection_bytes: u64,
}

/// A histogram in numbers, microseconds.
#[derive(Serialize)]
pub(crate) struct Summary {
    count: u64,
    mean: f64,
    stdev: f64,
    min: f64,
    p50: f64,
    p75: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    p9999: f64,
    max: f64,
}

impl Summary {
    fn of(histogram: &Histogram) -> Self {
        let at = |percent| histogram.percentile(percent) as f64 / 1e3;
        Summary {
            count: histogram.count(),
            mean: histogram.mean() / 1e3,
            stdev: histogram.deviation() / 1e3,
            min: histogram.min() as f64 / 1e3,
            p50: at(50.0),
            p75: at(75.0),
            p90: at(90.0),
            p99: at(99.0),
            p999: at(99.9),
            p9999: at(99.99),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

/// Puts a run's figures into the report.
pub(crate) fn report(
    plan: &Plan,
    command: Vec<String>,
    outcome: &Outcome,
    limits: &[Limit],
) -> Report {
    let tally = &outcome.tally;
    let seconds = outcome.measured.as_secs_f64();
    let started = outcome
        .started
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let (run_bytes, connection_bytes) = memory(outcome);
    let (pacing, planned_per_s) = pacing(plan);
    Report {
        schema: SCHEMA,
        command,
        started_unix_s: started.as_secs_f64(),
        threads: plan.threads,
        connections: plan.connections,
        servers: servers(plan),
        pacing,
        planned_per_s,
        protocol: plan.protocol.name(),
        streams: plan.streams(),
        duration_s: seconds,
        interrupted: outcome.interrupted,
        requests: Requests {
            started: tally.issued,
            answered: tally.completed,
            warmup: tally.warmup,
            failed: tally.failed,
            abandoned: tally.abandoned,
            unsent: tally.unsent,
        },
        requests_per_s: tally.completed as f64 / seconds,
        bytes_read: tally.bytes,
        bytes_per_s: tally.bytes as f64 / seconds,
        latency_us: Summary::of(&tally.latency),
        parts_us: parts(plan, outcome),
        connection_counts: Connections {
            opened: tally.connections,
            open_max: outcome.open_max,
            closed_between: tally.closed_between,
            tls_resumed: tally.resumed,
            early_data: tally.early_data,
            planned_new_share: plan.connreqs.mean().map(|mean| 1.0 / mean),
        },
        errors: errors(outcome),
        errors_total: tally.errors.total(),
        statuses: statuses(outcome),
        client_limited: limits.iter().any(Limit::is_of_client),
        client_limits: limits
            .iter()
            .map(|limit| LimitReport {
                reason: limit.name(),
                text: limit.to_string(),
            })
            .collect(),
        thread_reports: threads(outcome),
        series: series(outcome),
        memory: Memory {
            run_bytes,
            connection_bytes,
        },
        machine: outcome.machine.clone(),
        before: outcome.before,
        after: outcome.after,
    }
}

fn series(outcome: &Outcome) -> Series {
    let all = &outcome.tally.series;
    let mut series = Series {
        interval_s: all.interval_s(),
        ..Series::default()
    };
    for interval in all.intervals() {
        series.answered.push(interval.answered);
        series.failed.push(interval.errors);
        series.p50_us.push(interval.p50_us);
        series.p99_us.push(interval.p99_us);
        series.max_us.push(interval.max_us);
    }
    series
}

/// What starts a request, and how many times a second.
fn pacing(plan: &Plan) -> (&'static str, Option<f64>) {
    match plan.pacing {
        Pacing::Closed => ("answer", None),
        Pacing::Requests(_, per_s) => ("requests", Some(per_s)),
        Pacing::Connections(_, per_s) => ("connections", Some(per_s)),
    }
}

/// The servers that requests are sent to; the first ones stand for all.
fn servers(plan: &Plan) -> Vec<String> {
    const SHOWN_MAX: usize = 4;
    let endpoints = plan.targets.endpoints.iter().take(SHOWN_MAX);
    let url = |endpoint: &Endpoint| {
        let scheme = if endpoint.tls { "https" } else { "http" };
        format!("{scheme}://{}", endpoint.label)
    };
    endpoints.map(url).collect()
}

fn parts(plan: &Plan, outcome: &Outcome) -> BTreeMap<&'static str, Summary> {
    let tally = &outcome.tally;
    let parts = [
        ("connect", &tally.connect),
        ("tls", &tally.tls),
        ("first_byte", &tally.first_byte),
        ("last_byte", last_byte(plan.pacing, tally)),
        ("late_start", &tally.lag),
    ];
    parts
        .into_iter()
        .map(|(name, histogram)| (name, Summary::of(histogram)))
        .collect()
}

fn errors(outcome: &Outcome) -> BTreeMap<&'static str, u64> {
    let errors = &outcome.tally.errors;
    ErrorKind::ALL
        .iter()
        .map(|kind| (kind.name(), errors.of(*kind)))
        .collect()
}

fn statuses(outcome: &Outcome) -> BTreeMap<String, u64> {
    let counted = outcome
        .tally
        .statuses
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    counted
        .map(|(status, count)| (status.to_string(), *count))
        .collect()
}

fn threads(outcome: &Outcome) -> Vec<ThreadLine> {
    let line = |report: &ThreadReport| {
        let (running_share, queued_share) = shares(report);
        ThreadLine {
            started: report.issued,
            answered: report.completed,
            running_share,
            awake_share: report.awake_ns as f64 / report.wall_ns.max(1) as f64,
            queued_share,
            user_us: report.time.user_us,
            system_us: report.time.system_us,
        }
    };
    outcome.threads.iter().map(line).collect()
}
