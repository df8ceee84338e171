//! The kernel's counters of the server's network namespace.

use std::collections::BTreeMap;

use crate::metric::Figure;

/// Metric, file under /proc/PID/net, and the counters that it is the sum of.
type Row = (&'static str, &'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    ("listen_overflows", "netstat", &["TcpExt:ListenOverflows"]),
    ("listen_drops", "netstat", &["TcpExt:ListenDrops"]),
    ("syn_cookies", "netstat", &["TcpExt:SyncookiesSent"]),
    ("retransmits", "snmp", &["Tcp:RetransSegs"]),
    ("resets_sent", "snmp", &["Tcp:OutRsts"]),
    (
        "aborts",
        "netstat",
        &[
            "TcpExt:TCPAbortOnData",
            "TcpExt:TCPAbortOnClose",
            "TcpExt:TCPAbortOnMemory",
            "TcpExt:TCPAbortOnTimeout",
            "TcpExt:TCPAbortOnLinger",
            "TcpExt:TCPAbortFailed",
        ],
    ),
];

/// The counters of a process's network namespace now.
pub(super) fn read(pid: u32) -> BTreeMap<&'static str, Figure> {
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}"));
    let mut texts: BTreeMap<&str, Result<BTreeMap<String, f64>, String>> = BTreeMap::new();
    for name in ["netstat", "snmp"] {
        let parsed = file(name).map(|text| parse(&text));
        texts.insert(name, parsed.map_err(|error| format!("net/{name}: {error}")));
    }
    let mut counters = BTreeMap::new();
    for (metric, name, parts) in ROWS {
        let figure = match texts.get(name) {
            Some(Ok(values)) => sum(values, parts),
            Some(Err(error)) => Figure::Missing(error.clone()),
            None => Figure::Missing(format!("net/{name} was not read")),
        };
        counters.insert(*metric, figure);
    }
    let time_wait = file("sockstat").ok().and_then(|text| time_wait(&text));
    let time_wait = time_wait.map_or_else(
        || Figure::Missing("net/sockstat has no number".to_owned()),
        Figure::Value,
    );
    counters.insert("time_wait", time_wait);
    counters
}

fn sum(values: &BTreeMap<String, f64>, parts: &[&str]) -> Figure {
    let mut sum = 0.0;
    for part in parts {
        match values.get(*part) {
            Some(value) => sum += value,
            None => return Figure::Missing(format!("this kernel does not count {part}")),
        }
    }
    Figure::Value(sum)
}

/// Pairs of lines, names then values, each after the same `Prefix:`.
pub(super) fn parse(text: &str) -> BTreeMap<String, f64> {
    let lines: Vec<&str> = text.lines().collect();
    let mut values = BTreeMap::new();
    for pair in lines.chunks(2) {
        let [names, numbers] = pair else { continue };
        let prefix = names.split(' ').next().unwrap_or_default();
        let numbers = numbers.split(' ').skip(1);
        for (name, number) in names.split(' ').skip(1).zip(numbers) {
            if let Ok(number) = number.parse() {
                values.insert(format!("{prefix}{name}"), number);
            }
        }
    }
    values
}

/// `TCP: inuse 5 orphan 0 tw 123 alloc 7 mem 1`.
pub(super) fn time_wait(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let mut fields = line.split(' ');
    fields.find(|field| *field == "tw")?;
    fields.next()?.parse().ok()
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
