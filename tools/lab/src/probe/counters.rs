//! The kernel's counters of the server's network namespace.

use std::collections::BTreeMap;

use turnpike_host::Host;

use crate::metric::Figure;

/// Metric, and the counters that it is the sum of.
type Row = (&'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    ("listen_overflows", &["TcpExt.ListenOverflows"]),
    ("listen_drops", &["TcpExt.ListenDrops"]),
    ("syn_cookies", &["TcpExt.SyncookiesSent"]),
    ("retransmits", &["Tcp.RetransSegs"]),
    ("resets_sent", &["Tcp.OutRsts"]),
    (
        "aborts",
        &[
            "TcpExt.TCPAbortOnData",
            "TcpExt.TCPAbortOnClose",
            "TcpExt.TCPAbortOnMemory",
            "TcpExt.TCPAbortOnTimeout",
            "TcpExt.TCPAbortOnLinger",
            "TcpExt.TCPAbortFailed",
        ],
    ),
];

/// The counters of a process's network namespace now.
pub(super) fn read(pid: u32) -> BTreeMap<&'static str, Figure> {
    let host = Host::here();
    let values = host.network_counters_of(pid);
    let missing = |file: &str| Figure::Missing(format!("/proc/PID/net/{file} cannot be read"));
    let mut counters = BTreeMap::new();
    for (metric, parts) in ROWS {
        let figure = match &values {
            Some(values) => sum(values, parts),
            None => missing("netstat"),
        };
        counters.insert(*metric, figure);
    }
    let time_wait = host.socket_counts_of(pid);
    let time_wait = time_wait.map_or_else(
        || missing("sockstat"),
        |sockets| Figure::Value(sockets.time_wait as f64),
    );
    counters.insert("time_wait", time_wait);
    counters
}

fn sum(values: &BTreeMap<String, u64>, parts: &[&str]) -> Figure {
    let mut sum = 0;
    for part in parts {
        match values.get(*part) {
            Some(value) => sum += value,
            None => return Figure::Missing(format!("this kernel does not count {part}")),
        }
    }
    Figure::Value(sum as f64)
}

/// Increases; TIME_WAIT is a level, so its value at the end is used.
pub(super) fn since(
    before: &BTreeMap<&'static str, Figure>,
    after: &BTreeMap<&'static str, Figure>,
) -> BTreeMap<String, Figure> {
    let increase = |(name, later): (&&'static str, &Figure)| {
        let figure = match (before.get(name), later) {
            (Some(Figure::Value(from)), Figure::Value(to)) if *name != "time_wait" => {
                Figure::Value((to - from).max(0.0))
            }
            (_, later) => later.clone(),
        };
        ((*name).to_owned(), figure)
    };
    after.iter().map(increase).collect()
}
