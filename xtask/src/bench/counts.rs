//! Counts over an exact number of transactions: system calls by name, heap allocations.

use std::collections::BTreeMap;

use turnpike_testkit::tracer::{ACCEPTED_NOBODY, Tracer};
use turnpike_testkit::{Server, clients};

use super::plan::{Mode, Plan};
use super::progress::Progress;
use crate::contender::{Contender, serving_pid, url};

/// Clients at work at once while counting: few, for the tracer slows the server down.
const CLIENTS: u64 = 8;

/// Requests before anything is counted: caches are filled and lazy set-up is done.
const WARM_UP_REQUESTS: u64 = 200;

/// System calls per turn of the loop, not per transaction: a turn serves all ready transactions, so
/// their share depends on the load and is reported separately.
const WAITING: [&str; 4] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", ACCEPTED_NOBODY];

/// System calls of one server in one mode.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    pub(super) server: String,
    pub(super) mode: Mode,
    /// Calls per transaction by name, the waiting ones too.
    pub(super) by_name: BTreeMap<String, f64>,
}

impl Calls {
    /// Calls per transaction without the waiting ones.
    pub(super) fn working(&self) -> f64 {
        let working = self
            .by_name
            .iter()
            .filter(|(name, _)| !WAITING.contains(&name.as_str()));
        working.map(|(_, calls)| calls).sum()
    }

    /// Waiting calls per transaction.
    pub(super) fn waiting(&self) -> f64 {
        WAITING
            .iter()
            .filter_map(|name| self.by_name.get(*name))
            .sum()
    }

    /// The names, most frequent first, each with its number unless that is one.
    pub(super) fn names(&self) -> String {
        let mut calls: Vec<(&str, f64)> = self
            .by_name
            .iter()
            .filter(|(name, calls)| !WAITING.contains(&name.as_str()) && **calls >= 0.01)
            .map(|(name, calls)| (name.as_str(), *calls))
            .collect();
        calls.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(right.0)));
        let text = |(name, calls): &(&str, f64)| match (calls * 100.0).round() == 100.0 {
            true => (*name).to_owned(),
            false => format!("{name} {calls:.2}"),
        };
        calls.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

/// The allocations of our server in one mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocations {
    pub(super) mode: Mode,
    pub(super) per_request: f64,
}

/// Counts the calls of every server in every mode.
///
/// # Errors
/// A server or the tracer does not start, or a request failed.
pub(super) fn system_calls(
    plan: &Plan,
    contenders: &[Contender],
    progress: &mut Progress,
) -> Result<Vec<Calls>, String> {
    let mut all = Vec::new();
    for contender in contenders {
        for mode in Mode::ALL {
            progress.step(&format!(
                "system calls, {}, {}",
                contender.name,
                mode.text()
            ));
            let server = contender.start(&plan.configuration)?;
            requests(&server, mode, WARM_UP_REQUESTS)?;
            let tracer = Tracer::attach(&server, serving_pid(&server)?)?;
            requests(&server, mode, plan.transactions)?;
            let counts = tracer.end()?;
            let each = |count: u64| count as f64 / plan.transactions as f64;
            let by_name = counts
                .into_iter()
                .map(|(name, count)| (name, each(count)))
                .collect();
            all.push(Calls {
                server: contender.name.clone(),
                mode,
                by_name,
            });
        }
    }
    Ok(all)
}

/// Counts our allocations in every mode; the server must be built to count them.
///
/// # Errors
/// It does not start, does not count, or a request failed.
pub(super) fn allocations(
    plan: &Plan,
    counting: &Contender,
    progress: &mut Progress,
) -> Result<Vec<Allocations>, String> {
    let status = "server {\n location = /status { stub_status; }";
    let configuration = plan.configuration.replacen("server {", status, 1);
    let mut all = Vec::new();
    for mode in Mode::ALL {
        progress.step(&format!("allocations, {}", mode.text()));
        let server = counting.start(&configuration)?;
        requests(&server, mode, WARM_UP_REQUESTS)?;
        let before_asking = allocated(&server)?;
        let before = allocated(&server)?;
        requests(&server, mode, plan.transactions)?;
        let asking = before - before_asking; // what it takes to answer the question itself
        let made = (allocated(&server)? - before).saturating_sub(asking);
        all.push(Allocations {
            mode,
            per_request: made as f64 / plan.transactions as f64,
        });
    }
    Ok(all)
}

fn allocated(server: &Server) -> Result<u64, String> {
    let text = server.get("/status").text();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("allocations "));
    let count = line.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| format!("/status has no allocations:\n{text}"))
}

/// Sends exactly this many requests, none of which may fail.
fn requests(server: &Server, mode: Mode, count: u64) -> Result<(), String> {
    let (count, clients, url) = (count.to_string(), CLIENTS.to_string(), url(server));
    let mut arguments = vec!["-q", "-n", &count, "-c", &clients];
    if mode == Mode::KeepAlive {
        arguments.push("-k");
    }
    arguments.push(&url);
    let load = clients::ab(&arguments);
    match load.failed() {
        0 => Ok(()),
        _ => Err(format!("{load}\n{}", server.output())),
    }
}

#[cfg(test)]
mod tests;
