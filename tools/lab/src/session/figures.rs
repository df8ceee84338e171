//! The figures of a run, made of what its driver says and of what was seen meanwhile.

use turnpike_host::Host;

use super::measure::Setting;
use crate::driver::Reading;
use crate::metric::Figure;
use crate::noise;
use crate::probe::{Between, Calls};
use crate::record::Run;
use crate::statistics;

/// Another driver than ours that used its thread for this share of the time was the limit.
const DRIVER_SHARE_MAX: f64 = 0.95;

/// The value of a study that says how many connections the driver holds open.
const CONNECTIONS: &str = "held_connections";

/// The observations during the load.
pub(super) struct Seen {
    pub(super) reading: Reading,
    pub(super) between: Between,
    pub(super) contentions: Figure,
    /// That the server has executed.
    pub(super) instructions: Figure,
    /// The server's memory before the driver came.
    pub(super) memory_before: u64,
    /// The server's memory at the end of the measured time.
    pub(super) memory_bytes: u64,
    pub(super) workers: Result<Vec<u64>, String>,
}

/// The record of a run. `may_limit`: whether the driver as the limit is no reason for a mark.
pub(super) fn run(
    (round, position): (u32, u32),
    setting: &Setting<'_>,
    seen: Seen,
    calls: Result<Calls, String>,
    may_limit: bool,
) -> Run {
    let mut figures = seen.between.figures.clone();
    figures.insert("contentions_per_s".to_owned(), seen.contentions.clone());
    figures.extend(seen.reading.figures.clone());
    let rate = figures.get("requests_per_s").and_then(Figure::value);
    let requests = rate.unwrap_or_default() * seen.between.seconds;
    for (name, figure) in of_requests(setting, &seen, requests) {
        // A driver that reports it, as scripted ones do, is more exact.
        figures.entry(name.to_owned()).or_insert(figure);
    }
    for (name, figure) in of_memory(setting, &seen) {
        figures.insert(name.to_owned(), figure);
    }
    for (name, figure) in of_calls(&calls) {
        figures.insert(name.to_owned(), figure);
    }
    let fairness = match &seen.workers {
        Ok(counts) if counts.len() > 1 => statistics::fairness(counts).map_or_else(
            || Figure::Missing("no connections".to_owned()),
            Figure::Value,
        ),
        Ok(_) => Figure::Missing("there is one worker".to_owned()),
        Err(why) => Figure::Missing(why.clone()),
    };
    figures.entry("fairness".to_owned()).or_insert(fairness);
    let limited = limit(setting, &seen).filter(|_| !may_limit);
    let mut run = Run {
        round,
        position,
        case: setting.case.clone(),
        marks: Vec::new(),
        figures,
        workers: seen.workers,
        calls: calls.map(|calls| calls.by_name).unwrap_or_default(),
        cores: seen.between.cores,
        distribution: seen.reading.distribution,
    };
    run.marks = noise::marks(&run, limited.as_deref(), requests);
    run
}

/// What each request took.
fn of_requests(setting: &Setting<'_>, seen: &Seen, requests: f64) -> [(&'static str, Figure); 5] {
    let each = |all: f64| {
        if requests > 0.0 {
            Figure::Value(all / requests)
        } else {
            Figure::Missing("no request was answered".to_owned())
        }
    };
    let between = &seen.between;
    let busy_us = |is_meant: &dyn Fn(usize) -> bool| {
        let cores = between.cores.iter().filter(|core| is_meant(core.cpu));
        cores.map(|core| core.busy).sum::<f64>() * between.seconds * 1e6
    };
    let own_cores = if setting.placed.is_shared() {
        Figure::Missing("driver and server share CPUs".to_owned())
    } else {
        each(busy_us(&|cpu| setting.placed.server.contains(&cpu)))
    };
    let instructions = match &seen.instructions {
        Figure::Value(count) => each(*count),
        missing => missing.clone(),
    };
    [
        ("server_cpu_us", each(between.server_ns / 1e3)),
        ("driver_cpu_us", each(between.driver_ns / 1e3)),
        ("server_core_us", own_cores),
        ("machine_us", each(busy_us(&|_| true))),
        ("instructions", instructions),
    ]
}

fn of_memory(setting: &Setting<'_>, seen: &Seen) -> [(&'static str, Figure); 2] {
    let connections = setting.values.get(CONNECTIONS);
    let connections: Option<f64> = connections.and_then(|count| count.parse().ok());
    let memory = match seen.memory_bytes {
        0 => Figure::Missing("the memory of the server may not be read".to_owned()),
        bytes => Figure::Value(bytes as f64),
    };
    let grown = seen.memory_bytes.saturating_sub(seen.memory_before) as f64;
    let connection = match (connections, &memory) {
        (Some(count), Figure::Value(_)) if count > 0.0 => Figure::Value(grown / count),
        (Some(_), Figure::Missing(why)) => Figure::Missing(why.clone()),
        _ => Figure::Missing("the driver does not hold connections open".to_owned()),
    };
    [("memory_bytes", memory), ("connection_bytes", connection)]
}

fn of_calls(calls: &Result<Calls, String>) -> [(&'static str, Figure); 2] {
    let figure = |value: fn(&Calls) -> f64| match calls {
        Ok(calls) => Figure::Value(value(calls)),
        Err(why) => Figure::Missing(why.clone()),
    };
    [
        ("system_calls", figure(Calls::working)),
        ("waits", figure(Calls::waiting)),
    ]
}

/// Why the driver was the limit, if it was.
fn limit(setting: &Setting<'_>, seen: &Seen) -> Option<String> {
    if let Some(known) = &seen.reading.limited {
        return known.clone();
    }
    let share = seen.between.driver_ns / 1e9 / seen.between.seconds;
    let cpus = setting.placed.driver.len() as f64;
    let own = !setting.placed.is_shared() && share > DRIVER_SHARE_MAX * cpus;
    own.then(|| format!("the driver used {:.0} % of its CPUs", share / cpus * 100.0))
}

/// The memory of these processes, shared pages by share.
pub(super) fn memory_bytes(family: &[u32]) -> u64 {
    let host = Host::here();
    let of_process = |process: &u32| host.process_memory(*process).proportional_bytes;
    family.iter().map(of_process).sum()
}
