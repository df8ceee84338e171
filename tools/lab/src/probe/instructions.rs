//! The instructions that a server's threads execute, in their own code and in the kernel's.

use turnpike_host::Host;

use crate::metric::Figure;
use crate::sys::Counter;

/// Counts from when it is made, for the threads that there are then.
#[derive(Debug)]
pub(crate) struct Instructions(Result<Vec<Counter>, String>);

impl Instructions {
    /// Starts to count for every thread of these processes.
    pub(crate) fn start(family: &[u32]) -> Instructions {
        let threads = family.iter().flat_map(|pid| Host::here().threads(*pid));
        let counters = threads.map(|thread| {
            Counter::instructions(thread).map_err(|error| format!("perf_event_open: {error}"))
        });
        Instructions(counters.collect())
    }

    /// Instructions so far.
    pub(crate) fn figure(&self) -> Figure {
        let counters = match &self.0 {
            Ok(counters) => counters,
            Err(why) => return Figure::Missing(why.clone()),
        };
        let mut sum = 0;
        for counter in counters {
            match counter.read() {
                Ok(count) => sum += count,
                Err(error) => return Figure::Missing(error.to_string()),
            }
        }
        Figure::Value(sum as f64)
    }
}
