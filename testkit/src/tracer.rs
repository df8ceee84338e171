//! strace on the serving threads of a server under test.

use std::collections::BTreeMap;

use crate::Server;

pub use turnpike_trace::{ACCEPTED_NOBODY, run};

/// A strace on the lanes of a process, or on its only thread if it has no lanes.
#[derive(Debug)]
pub struct Tracer(turnpike_trace::Tracer);

impl Tracer {
    /// Starts to count the system calls of that process. The report is written to the server's
    /// folder.
    ///
    /// # Errors
    /// There is no strace, or it may not trace.
    pub fn attach(server: &Server, pid: u32) -> Result<Tracer, String> {
        let report = server.folder().join("strace.txt");
        turnpike_trace::Tracer::count(serving_threads(pid), &report).map(Tracer)
    }

    /// Has calls of these threads fail until the tracer is dropped: see
    /// [`turnpike_trace::Tracer::failing`].
    ///
    /// # Errors
    /// As [`Tracer::attach`].
    pub fn failing(server: &Server, pid: u32, what: &str) -> Result<Tracer, String> {
        let report = server.folder().join("strace.txt");
        turnpike_trace::Tracer::failing(serving_threads(pid), &report, what).map(Tracer)
    }

    /// Stops counting, once the threads wait for events; returns the calls by name.
    ///
    /// # Errors
    /// strace left no report.
    pub fn end(self) -> Result<BTreeMap<String, u64>, String> {
        self.0.end()
    }
}

/// The serving threads of a process: its lanes, or its only thread. The threads that watch lanes
/// are left out, since they run by the clock.
fn serving_threads(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let lanes: Vec<u32> = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.starts_with("lane "))
        })
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect();
    if lanes.is_empty() { vec![pid] } else { lanes }
}
