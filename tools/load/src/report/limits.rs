//! Was the generator itself the limit? Then the figures are the generator's, not the server's.

use crate::plan::{Pacing, Plan};
use crate::run::{Outcome, ThreadReport};
use crate::tally::ErrorKind;

/// A thread that had no pause for this share of the run could not have driven more.
const BUSY_SHARE_MAX: f64 = 0.95;
/// An open loop that starts its requests later than this (99th percentile, nanoseconds) did not
/// keep its schedule.
const LAG_NS_MAX: u64 = 1_000_000;
/// A clock that costs more than this per look, in nanoseconds, is read by a system call.
const CLOCK_READ_NS_MAX: u64 = 500;

/// Why the figures are not what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Limit {
    /// A thread ran, or waited for a CPU, all the time.
    Cpu {
        thread: usize,
        running_percent: f64,
        queued_percent: f64,
    },
    /// Requests were started late although connections were free.
    ScheduleLag { p99_ns: u64 },
    /// All connections were busy, so requests that were due were never sent.
    Connections { unsent: u64, connections: usize },
    /// No source ports were free.
    Ports { errors: u64 },
    /// Most ephemeral ports were in TIME_WAIT before the run, so connect(2) searched long.
    TimeWait { sockets: u64, ports: u64 },
    /// The file limit stopped connections.
    Files { errors: u64 },
    /// Looking at the clock costs a system call.
    Clock { read_ns: u64 },
}

impl Limit {
    /// The reason's name in JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Limit::Cpu { .. } => "cpu",
            Limit::ScheduleLag { .. } => "schedule_lag",
            Limit::Connections { .. } => "connections",
            Limit::Ports { .. } => "ports",
            Limit::TimeWait { .. } => "time_wait",
            Limit::Files { .. } => "files",
            Limit::Clock { .. } => "clock",
        }
    }

    /// Whether the generator was the limit, and not the server.
    pub(crate) fn is_of_client(&self) -> bool {
        !matches!(self, Limit::Connections { .. })
    }

    /// The word before the reason in the text.
    pub(crate) fn label(&self) -> &'static str {
        if self.is_of_client() {
            "Client-limited"
        } else {
            "Rate not reached"
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::Cpu {
                thread,
                running_percent,
                queued_percent,
            } => write!(
                formatter,
                "thread {thread} had no pause: {running_percent:.0}% on a CPU, \
                 {queued_percent:.0}% waiting for one"
            ),
            Limit::ScheduleLag { p99_ns } => write!(
                formatter,
                "requests started late although connections were free: p99 {:.2} ms",
                *p99_ns as f64 / 1e6
            ),
            Limit::Connections {
                unsent,
                connections,
            } => write!(
                formatter,
                "{unsent} requests were due and never sent, because all {connections} \
                 connections waited for answers; the server is too slow for this rate, or -c too \
                 low"
            ),
            Limit::Ports { errors } => write!(formatter, "no free source port, {errors} times"),
            Limit::TimeWait { sockets, ports } => write!(
                formatter,
                "{sockets} sockets in TIME_WAIT before the run, {ports} ephemeral ports"
            ),
            Limit::Files { errors } => write!(formatter, "file limit reached, {errors} times"),
            Limit::Clock { read_ns } => {
                write!(formatter, "slow clock: {read_ns} ns for each reading")
            }
        }
    }
}

/// All reasons to distrust the figures; empty when there is none.
pub(crate) fn find(plan: &Plan, outcome: &Outcome) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (thread, report) in outcome.threads.iter().enumerate() {
        let (running, queued) = shares(report);
        if running + queued >= BUSY_SHARE_MAX {
            limits.push(Limit::Cpu {
                thread,
                running_percent: running * 100.0,
                queued_percent: queued * 100.0,
            });
        }
    }
    let lag = &outcome.tally.lag;
    if plan.pacing != Pacing::Closed && lag.percentile(99.0) > LAG_NS_MAX {
        limits.push(Limit::ScheduleLag {
            p99_ns: lag.percentile(99.0),
        });
    }
    if outcome.tally.unsent > 0 {
        limits.push(Limit::Connections {
            unsent: outcome.tally.unsent,
            connections: plan.connections,
        });
    }
    let ports = outcome.tally.errors.of(ErrorKind::NoPorts);
    if ports > 0 {
        limits.push(Limit::Ports { errors: ports });
    }
    let (first, last) = outcome.machine.ports;
    let width = u64::from(last.saturating_sub(first)) + 1;
    let many = outcome.tally.connections > width / 4;
    if many && outcome.before.time_wait > width / 2 {
        limits.push(Limit::TimeWait {
            sockets: outcome.before.time_wait,
            ports: width,
        });
    }
    let files = outcome.tally.errors.of(ErrorKind::NoFiles);
    if files > 0 {
        limits.push(Limit::Files { errors: files });
    }
    if outcome.machine.clock_read_ns > CLOCK_READ_NS_MAX {
        limits.push(Limit::Clock {
            read_ns: outcome.machine.clock_read_ns,
        });
    }
    limits
}

/// The shares of a thread's time at work on a CPU and waiting for one.
pub(crate) fn shares(report: &ThreadReport) -> (f64, f64) {
    let wall_ns = report.wall_ns.max(1) as f64;
    (
        report.time.running_ns as f64 / wall_ns,
        report.time.queued_ns as f64 / wall_ns,
    )
}
