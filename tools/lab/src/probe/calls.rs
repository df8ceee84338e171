//! The system calls of a known number of requests, counted by strace.

use std::collections::BTreeMap;
use std::path::Path;

use turnpike_host::Host;
use turnpike_trace::{ACCEPTED_NOBODY, Tracer};

/// System calls per turn of a server's loop, not per request: a turn serves all ready connections,
/// so their share depends on the load and is reported separately.
const WAITING: [&str; 4] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", ACCEPTED_NOBODY];

/// Threads that have run for less than this share of their processes' time run by the clock, and
/// serve nobody.
const SERVING_SHARE_MIN: f64 = 0.01;

/// System calls for each request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calls {
    pub(crate) by_name: BTreeMap<String, f64>,
}

impl Calls {
    /// Of so many requests.
    fn of(counts: BTreeMap<String, u64>, requests: u64) -> Calls {
        let each = |count: u64| count as f64 / requests.max(1) as f64;
        let by_name = counts.into_iter();
        Calls {
            by_name: by_name.map(|(name, count)| (name, each(count))).collect(),
        }
    }

    /// Calls of a request's own work.
    pub(crate) fn working(&self) -> f64 {
        let all = self.by_name.iter();
        let working = all.filter(|(name, _)| !is_waiting(name));
        working.map(|(_, calls)| calls).sum()
    }

    /// Calls that wait for more to do.
    pub(crate) fn waiting(&self) -> f64 {
        let all = self.by_name.iter();
        let waiting = all.filter(|(name, _)| is_waiting(name));
        waiting.map(|(_, calls)| calls).sum()
    }
}

/// Whether a system call waits for more to do.
pub(crate) fn is_waiting(name: &str) -> bool {
    WAITING.contains(&name)
}

/// Counts from when it is made.
#[derive(Debug)]
pub(crate) struct CallCounter(Tracer);

impl CallCounter {
    /// Starts to count for the threads of these processes that serve. strace writes its report into
    /// the folder.
    ///
    /// # Errors
    /// There is no strace, or it may not trace.
    pub(crate) fn start(family: &[u32], folder: &Path) -> Result<CallCounter, String> {
        let threads = serving(family);
        Tracer::count(threads, &folder.join("strace.txt")).map(CallCounter)
    }

    /// Stops counting, after so many requests.
    ///
    /// # Errors
    /// strace left no report.
    pub(crate) fn end(self, requests: u64) -> Result<Calls, String> {
        Ok(Calls::of(self.0.end()?, requests))
    }
}

/// The threads that have run for more than a small share of the time of all.
fn serving(family: &[u32]) -> Vec<u32> {
    let host = Host::here();
    let mut threads = Vec::new();
    for process in family {
        for thread in host.threads(*process) {
            threads.push((thread, host.thread_run_ns(*process, thread) as f64));
        }
    }
    let all: f64 = threads.iter().map(|(_, ns)| ns).sum();
    let serving = threads
        .iter()
        .filter(|(_, ns)| *ns >= all * SERVING_SHARE_MIN);
    serving.map(|(thread, _)| *thread).collect()
}
