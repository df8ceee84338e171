//! Counts of a server's system calls by strace: they do not depend on the machine's speed, so tests
//! may assert them. strace also has calls fail that the kernel cannot be made to refuse.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use crate::{Server, Signal, process, wait_for};

/// An accept4 without a connection: it ends a turn of the loop.
pub const ACCEPTED_NOBODY: &str = "accept4, nobody there";

/// A strace that counts on the serving threads.
#[derive(Debug)]
pub struct Tracer {
    child: Child,
    report: std::path::PathBuf,
    pid: u32,
    threads: Vec<String>,
}

impl Tracer {
    /// Starts to count the system calls of the lanes of that process, or of its only thread if it
    /// has no lanes. The report is written to the server's folder.
    ///
    /// # Errors
    /// There is no strace, or it may not trace.
    pub fn attach(server: &Server, pid: u32) -> Result<Tracer, String> {
        Tracer::start(server, pid, &["-c", "-U", "calls,errors,name"])
    }

    /// Has calls of these threads fail until the tracer is dropped, as strace's `inject=` says:
    /// `sendmsg:error=EAGAIN:when=2` is the second call of each thread.
    ///
    /// # Errors
    /// As [`Tracer::attach`].
    pub fn failing(server: &Server, pid: u32, what: &str) -> Result<Tracer, String> {
        let inject = format!("inject={what}");
        let call = what.split(':').next().unwrap_or_default();
        let trace = format!("trace={call}");
        Tracer::start(server, pid, &["-e", &trace, "-e", &inject])
    }

    fn start(server: &Server, pid: u32, arguments: &[&str]) -> Result<Tracer, String> {
        let report = server.folder().join("strace.txt");
        let threads = serving_threads(pid);
        let child = Command::new("strace")
            .args(arguments)
            .arg("-o")
            .arg(&report)
            .args(threads.iter().flat_map(|thread| ["-p", thread.as_str()]))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("strace: {error}; please run: cargo xtask setup test"))?;
        let tracer = Tracer {
            child,
            report,
            pid,
            threads,
        };
        match wait_for(|| is_traced(pid, &tracer.threads).then_some(())) {
            Some(()) => Ok(tracer),
            None => Err("strace may not trace the serving process".to_owned()),
        }
    }

    /// Stops counting, once the threads wait for events; returns the calls by name.
    ///
    /// # Errors
    /// strace left no report.
    pub fn end(mut self) -> Result<BTreeMap<String, u64>, String> {
        // A call is counted when it returns, which may be after its peer has seen its effect.
        let is_at_rest = || self.threads.iter().all(|thread| sleeps(self.pid, thread));
        let _ = wait_for(|| is_at_rest().then_some(())); // else the numbers show it
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

/// The calls by name in strace's table: rows of calls, errors if there are any, name.
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

/// The serving threads of a process: its lanes, or its only thread. The threads that watch lanes
/// are left out, since they run by the clock.
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

/// Whether a thread sleeps, which lanes do only while they wait for events, or has ended.
fn sleeps(pid: u32, thread: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")) else {
        return true;
    };
    // The state stands behind the name, which may have any bytes.
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.starts_with('S')
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
