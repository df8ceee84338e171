//! Counts over an exact number of transactions: system calls by name, heap allocations.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use turnpike_testkit::{Server, Signal, clients, process, wait_for};

use super::{Contender, Mode, Plan, Progress, serving_pid, url};

/// Clients at work at once while counting: few, for the tracer slows the server down.
const CLIENTS: u64 = 8;

/// Requests before anything is counted: caches are filled and lazy set-up is done.
const WARM_UP_REQUESTS: u64 = 200;

/// An accept4 that found nobody: it ends a turn of the loop.
const ACCEPTED_NOBODY: &str = "accept4, nobody there";

/// System calls of a turn of the loop, not of a transaction: one serves as many transactions as
/// are ready, so their share depends on the load and is told apart.
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

    /// The names, most frequent first, each with its number where that is not one.
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

/// Allocations of ours in one mode.
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
            let tracer = Tracer::attach(&server)?;
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
    count.ok_or_else(|| format!("/status tells no allocations:\n{text}"))
}

/// Exactly so many requests, none of which may fail.
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
        _ => Err(format!("{load}\n{}", server.said())),
    }
}

/// strace, counting on the threads that serve.
struct Tracer {
    child: Child,
    report: std::path::PathBuf,
}

impl Tracer {
    fn attach(server: &Server) -> Result<Tracer, String> {
        let pid = serving_pid(server)?;
        let report = server.folder().join("strace.txt");
        let threads = serving_threads(pid);
        let child = Command::new("strace")
            .args(["-c", "-U", "calls,errors,name", "-o"])
            .arg(&report)
            .args(threads.iter().flat_map(|thread| ["-p", thread.as_str()]))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("strace: {error}; please run: cargo xtask setup test"))?;
        let tracer = Tracer { child, report };
        match wait_for(|| is_traced(pid, &threads).then_some(())) {
            Some(()) => Ok(tracer),
            None => Err("strace may not trace the serving process".to_owned()),
        }
    }

    fn end(mut self) -> Result<BTreeMap<String, u64>, String> {
        process::signal(self.child.id(), Signal::SIGINT);
        self.child
            .wait()
            .map_err(|error| format!("strace: {error}"))?;
        let text = std::fs::read_to_string(&self.report);
        let text = text.map_err(|error| format!("strace left no report: {error}"))?;
        Ok(counts(&text))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // gone already after `end`
        let _ = self.child.wait();
    }
}

/// Calls by name from strace's table: rows of calls, errors where there are any, name.
fn counts(table: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match words[..] {
            [calls, name] => (calls, "0", name),
            [calls, errors, name] => (calls, errors, name),
            _ => continue,
        };
        let (Ok(calls), Ok(errors)) = (calls.parse::<u64>(), errors.parse::<u64>()) else {
            continue;
        };
        match name {
            "total" => {}
            "accept4" => {
                counts.insert(name.to_owned(), calls.saturating_sub(errors));
                counts.insert(ACCEPTED_NOBODY.to_owned(), errors);
            }
            name => drop(counts.insert(name.to_owned(), calls)),
        }
    }
    counts
}

/// The threads of a process that serve: its lanes, or its only one. What looks after lanes does so
/// by the clock, however many transactions there are.
fn serving_threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lanes: Vec<String> = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.starts_with("lane "))
        })
        .filter_map(|task| task.file_name().into_string().ok())
        .collect();
    match lanes.is_empty() {
        true => vec![pid.to_string()],
        false => lanes,
    }
}

/// Whether each of these threads has a tracer.
fn is_traced(pid: u32, threads: &[String]) -> bool {
    threads.iter().all(|thread| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/status"));
        let tracer = status.as_deref().unwrap_or_default();
        let tracer = tracer
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|pid| pid.trim() != "0")
    })
}

#[cfg(test)]
mod tests;
