//! The host's activity during a run. A value that the machine does not provide is kept as the
//! reason, never as zero.

mod calls;
mod contention;
mod cores;
mod counters;
mod instructions;
mod workers;

use std::collections::BTreeMap;
use std::time::Instant;

pub(crate) use calls::{CallCounter, Calls, is_waiting};
pub(crate) use contention::Contention;
pub(crate) use cores::CoreTimes;
pub(crate) use instructions::Instructions;
use turnpike_host::{CpuTimes, Host};
pub(crate) use workers::Workers;

use crate::metric::Figure;
use crate::process;

/// The watched processes.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    /// All processes of the contender.
    pub(crate) server: Vec<u32>,
    /// The process whose network namespace the server is in.
    pub(crate) network: u32,
    /// All processes of the driver.
    pub(crate) driver: Vec<u32>,
}

/// The state of the host at one time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    at: Instant,
    cores: Vec<CpuTimes>,
    server_ns: u64,
    driver_ns: u64,
    counters: BTreeMap<&'static str, Figure>,
}

/// The changes between two times.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Between {
    pub(crate) seconds: f64,
    pub(crate) figures: BTreeMap<String, Figure>,
    /// Shares of each CPU's time, in the order of their numbers.
    pub(crate) cores: Vec<CoreTimes>,
    pub(crate) server_ns: f64,
    pub(crate) driver_ns: f64,
}

impl Snapshot {
    /// Takes the current state.
    pub(crate) fn take(watched: &Watched) -> Snapshot {
        let counters = counters::read(watched.network);
        Snapshot {
            cores: Host::here().cpu_times(),
            server_ns: process::run_ns(&watched.server),
            driver_ns: process::run_ns(&watched.driver),
            counters,
            at: Instant::now(),
        }
    }

    /// The changes until `later`.
    pub(crate) fn until(&self, later: &Snapshot) -> Between {
        let seconds = (later.at - self.at).as_secs_f64().max(1e-9);
        let cores = cores::shares(&self.cores, &later.cores);
        let server_ns = later.server_ns.saturating_sub(self.server_ns) as f64;
        let driver_ns = later.driver_ns.saturating_sub(self.driver_ns) as f64;
        let mut figures = counters::since(&self.counters, &later.counters);
        figures.extend(cores::figures(&cores));
        let busy = figures.get("busy_share").and_then(Figure::value);
        let foreign = match busy {
            Some(busy) if !cores.is_empty() => {
                let ours = (server_ns + driver_ns) / 1e9 / seconds / cores.len() as f64;
                Figure::Value((busy - ours).max(0.0))
            }
            _ => Figure::Missing("/proc/stat cannot be read".to_owned()),
        };
        figures.insert("foreign_share".to_owned(), foreign);
        Between {
            seconds,
            figures,
            cores,
            server_ns,
            driver_ns,
        }
    }
}

#[cfg(test)]
mod tests;
