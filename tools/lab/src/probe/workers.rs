//! The number of connections that each worker accepts: returns of accept(2) and accept4(2) with a
//! descriptor, counted per thread.
//!
//! The tracepoint slows every system call a little, so it only counts during the warm-up and is
//! removed before the measurement.

use turnpike_host::Host;

use super::contention::tracepoint;
use crate::sys::{Counted, Counter};

/// Both calls that accept.
const CALLS: &[&str] = &["sys_exit_accept", "sys_exit_accept4"];

/// Counts from when it is made.
#[derive(Debug)]
pub(crate) struct Workers(Result<Vec<Counter>, String>);

impl Workers {
    /// Starts to count for every thread of these processes.
    pub(crate) fn start(family: &[u32]) -> Workers {
        Workers(open(family))
    }

    /// Connections by worker, the busiest first. With `expected` workers, those without a
    /// connection are included; further threads have other tasks.
    pub(crate) fn shares(&self, expected: Option<usize>) -> Result<Vec<u64>, String> {
        let counters = self.0.as_ref().map_err(Clone::clone)?;
        let mut counts = Vec::new();
        for calls in counters.chunks(CALLS.len()) {
            let mut sum = 0;
            for counter in calls {
                sum += counter.read().map_err(|error| error.to_string())?;
            }
            counts.push(sum);
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let accepted = counts.iter().filter(|count| **count > 0).count();
        counts.truncate(expected.unwrap_or(accepted).max(accepted));
        match counts.iter().sum::<u64>() {
            0 => Err("no connection was accepted while it was counted".to_owned()),
            _ => Ok(counts),
        }
    }
}

fn open(family: &[u32]) -> Result<Vec<Counter>, String> {
    let mut counters = Vec::new();
    let ids: Result<Vec<u64>, String> = CALLS
        .iter()
        .map(|name| tracepoint("syscalls", name))
        .collect();
    let ids = ids?;
    for thread in family.iter().flat_map(|pid| Host::here().threads(*pid)) {
        for id in &ids {
            let counter = Counter::open(*id, Counted::Thread(thread), Some("ret >= 0"))
                .map_err(|error| format!("perf_event_open: {error}"))?;
            counters.push(counter);
        }
    }
    Ok(counters)
}
