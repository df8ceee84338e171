//! The table of metrics: each with its unit, and the better direction.

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
    Neither,
}

/// The format of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A rate per second.
    PerSecond,
    /// Microseconds, shown as ms from a thousand on.
    Microseconds,
    BitsPerSecond,
    /// A share of 1, shown in percent.
    Share,
    /// A number of things.
    Count,
    /// A number of things for each request, shown with two digits behind the point.
    Each,
    /// Bytes of memory.
    Bytes,
    /// Without unit.
    Plain,
}

/// A metric.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    pub(crate) better: Better,
}

const fn metric(name: &'static str, title: &'static str, unit: Unit, better: Better) -> Metric {
    Metric {
        name,
        title,
        unit,
        better,
    }
}

/// All metrics, in the order of tables.
pub(crate) const METRICS: &[Metric] = &[
    metric(
        "requests_per_s",
        "requests/s",
        Unit::PerSecond,
        Better::Higher,
    ),
    metric(
        "connections_per_s",
        "connections/s",
        Unit::PerSecond,
        Better::Higher,
    ),
    metric(
        "latency_mean_us",
        "latency, mean",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "latency_stdev_us",
        "latency, deviation",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "latency_p50_us",
        "latency, p50",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "latency_p75_us",
        "latency, p75",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "latency_p90_us",
        "latency, p90",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "latency_p99_us",
        "latency, p99",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "latency_p999_us",
        "latency, p99.9",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric("errors", "errors", Unit::Count, Better::Lower),
    metric(
        "bits_per_s",
        "bit rate",
        Unit::BitsPerSecond,
        Better::Higher,
    ),
    metric(
        "server_cpu_us",
        "server CPU/request",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "driver_cpu_us",
        "driver CPU/request",
        Unit::Microseconds,
        Better::Neither,
    ),
    metric(
        "server_core_us",
        "server's cores/request",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "machine_us",
        "all CPUs/request",
        Unit::Microseconds,
        Better::Lower,
    ),
    metric(
        "system_calls",
        "system calls/request",
        Unit::Each,
        Better::Lower,
    ),
    metric(
        "waits",
        "waiting calls/request",
        Unit::Each,
        Better::Neither,
    ),
    metric(
        "instructions",
        "instructions/request",
        Unit::Count,
        Better::Lower,
    ),
    metric("memory_bytes", "server memory", Unit::Bytes, Better::Lower),
    metric(
        "connection_bytes",
        "memory of a connection",
        Unit::Bytes,
        Better::Lower,
    ),
    metric("busy_share", "CPUs busy", Unit::Share, Better::Neither),
    metric("idle_share", "CPUs idle", Unit::Share, Better::Neither),
    metric("softirq_share", "softirq", Unit::Share, Better::Neither),
    metric("steal_share", "steal", Unit::Share, Better::Neither),
    metric("foreign_share", "foreign CPU", Unit::Share, Better::Neither),
    metric(
        "contentions_per_s",
        "lock contentions/s",
        Unit::PerSecond,
        Better::Lower,
    ),
    metric(
        "fairness",
        "fairness of workers",
        Unit::Plain,
        Better::Higher,
    ),
    metric(
        "listen_overflows",
        "accept-queue overflows",
        Unit::Count,
        Better::Lower,
    ),
    metric("listen_drops", "listen drops", Unit::Count, Better::Lower),
    metric(
        "syn_cookies",
        "SYN cookies sent",
        Unit::Count,
        Better::Lower,
    ),
    metric("retransmits", "retransmits", Unit::Count, Better::Lower),
    metric("resets_sent", "resets sent", Unit::Count, Better::Neither),
    metric("aborts", "aborted connections", Unit::Count, Better::Lower),
    metric(
        "time_wait",
        "TIME_WAIT at the end",
        Unit::Count,
        Better::Neither,
    ),
];

/// The metric of this name.
pub(crate) fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Metric {
    /// A value with its unit, for people.
    pub(crate) fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond | Unit::Count => thousands(value),
            Unit::Microseconds if value >= 1000.0 => format!("{} ms", short(value / 1000.0)),
            Unit::Microseconds => format!("{} µs", short(value)),
            Unit::BitsPerSecond if value >= 1e9 => format!("{} Gbit/s", short(value / 1e9)),
            Unit::BitsPerSecond => format!("{} Mbit/s", short(value / 1e6)),
            Unit::Share => format!("{} %", short(value * 100.0)),
            Unit::Each => format!("{value:.2}"),
            Unit::Bytes if value >= 1e6 => format!("{} MB", short(value / 1e6)),
            Unit::Bytes if value >= 1e4 => format!("{} kB", short(value / 1e3)),
            Unit::Bytes => format!("{value:.0} B"),
            Unit::Plain => format!("{value:.3}"),
        }
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A whole number with thin gaps; a small one with its fraction.
fn thousands(value: f64) -> String {
    if value != 0.0 && value.abs() < 10.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    if value < 0.0 {
        shown.insert(0, '-');
    }
    shown
}

/// The result of a metric in a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Figure {
    /// A value in the metric's unit.
    Value(f64),
    /// The reason why the value is not available.
    Missing(String),
}

impl Figure {
    /// The value, where there is one.
    pub(crate) fn value(&self) -> Option<f64> {
        match self {
            Figure::Value(value) => Some(*value),
            Figure::Missing(_) => None,
        }
    }
}
