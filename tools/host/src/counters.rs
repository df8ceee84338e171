//! What the network stack has counted: events of TCP, work of each CPU, and pressure.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// What a CPU has done with received packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PacketWork {
    pub cpu: usize,
    /// Runs of the receive soft interrupt (`NET_RX` in `/proc/softirqs`).
    pub receive_runs: u64,
    /// Packets taken, of any interface.
    pub packets: u64,
    /// Packets lost because this CPU's queue (`net.core.netdev_max_backlog`) was full.
    pub dropped: u64,
    /// How often the work's budget ended before the work.
    pub squeezed: u64,
}

/// The share of time in which something waited for a resource, in percent, over ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    pub cpu_some: f64,
    pub memory_some: f64,
    pub memory_full: f64,
}

impl Host {
    /// The counters of `/proc/net/netstat` and `/proc/net/snmp`, by names such as
    /// `TcpExt.ListenOverflows`; those that are 0 are left out.
    pub fn network_counters(&self) -> BTreeMap<String, u64> {
        let counters = self.counters_below("proc/net");
        let known = counters.unwrap_or_default().into_iter();
        known.filter(|(_, count)| *count > 0).collect()
    }

    /// The same counters of a process's network namespace, those that are 0 included; `None` where
    /// there is no such process. `process` is its number, or `thread-self` for this thread's.
    pub fn network_counters_of(&self, process: impl Display) -> Option<BTreeMap<String, u64>> {
        self.counters_below(&format!("proc/{process}/net"))
    }

    /// `None` where both files are missing.
    fn counters_below(&self, folder: &str) -> Option<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        for file in ["netstat", "snmp"] {
            let text = self.text(format!("{folder}/{file}"));
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.chunks_exact(2) {
                let mut names = pair[0].split_whitespace();
                let mut values = pair[1].split_whitespace();
                let group = names.next().unwrap_or_default().trim_end_matches(':');
                values.next();
                for (name, value) in names.zip(values) {
                    // Some are not counters: -1 stands for none.
                    if let Ok(count) = value.parse() {
                        counters.insert(format!("{group}.{name}"), count);
                    }
                }
            }
        }
        (!counters.is_empty()).then_some(counters)
    }

    /// What each CPU has done with received packets.
    pub fn packet_work(&self) -> Vec<PacketWork> {
        let softirqs = self.text("proc/softirqs");
        let row = softirqs.lines().map(str::trim);
        let row = row.filter_map(|line| line.strip_prefix("NET_RX:")).next();
        let runs = row.unwrap_or_default().split_whitespace();
        let runs: Vec<u64> = runs.filter_map(|word| word.parse().ok()).collect();
        let text = self.text("proc/net/softnet_stat");
        let stat = |(index, line): (usize, &str)| {
            let fields = line.split_whitespace();
            let fields: Vec<u64> = fields
                .filter_map(|field| u64::from_str_radix(field, 16).ok())
                .collect();
            let field = |at: usize| fields.get(at).copied().unwrap_or(0);
            // The thirteenth field is the CPU's number, since Linux 5.14.
            let cpu = fields.get(12).map_or(index, |cpu| *cpu as usize);
            PacketWork {
                cpu,
                receive_runs: runs.get(cpu).copied().unwrap_or(0),
                packets: field(0),
                dropped: field(1),
                squeezed: field(2),
            }
        };
        text.lines().enumerate().map(stat).collect()
    }

    /// How much is waited for CPUs and memory (PSI, Linux 4.20); 0 where the kernel does not tell.
    pub fn pressure(&self) -> Pressure {
        let share = |file: &str, kind: &str| {
            let text = self.text(format!("proc/pressure/{file}"));
            let line = text.lines().find(|line| line.starts_with(kind));
            let word = line
                .and_then(|line| line.split_once("avg10="))
                .map(|part| part.1);
            let number = word.and_then(|word| word.split(' ').next());
            number.and_then(|number| number.parse().ok()).unwrap_or(0.0)
        };
        Pressure {
            cpu_some: share("cpu", "some"),
            memory_some: share("memory", "some"),
            memory_full: share("memory", "full"),
        }
    }
}
