//! What cores and processes have done, as the kernel counts it.

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::memory::kibibytes;

/// The kernel's unit of processor time in `/proc/stat`, in microseconds: 100 ticks a second on
/// every Linux that we know.
const TICK_US: u64 = 10_000;

/// How a CPU has spent its time since the start, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTimes {
    /// The CPU's number.
    pub cpu: usize,
    /// Everything but idle and steal; softirq is in it.
    pub busy_us: u64,
    pub idle_us: u64,
    pub softirq_us: u64,
    /// What the hypervisor gave to others while we wanted it.
    pub steal_us: u64,
}

/// A process's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident bytes, shared pages in full.
    pub resident_bytes: u64,
    /// Resident bytes, shared pages by share.
    pub proportional_bytes: u64,
}

impl Host {
    /// How each CPU has spent its time.
    pub fn cpu_times(&self) -> Vec<CpuTimes> {
        let text = self.text("proc/stat");
        text.lines().filter_map(cpu_times).collect()
    }

    /// The threads of a process, by number; none where there is no such process.
    pub fn threads(&self, process: u32) -> Vec<u32> {
        let names = self.names(format!("proc/{process}/task"));
        let mut threads: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        threads.sort_unstable();
        threads
    }

    /// For how long the threads that a process has now have run, in nanoseconds.
    pub fn run_ns(&self, process: u32) -> u64 {
        let threads = self.threads(process);
        let of_thread = |thread: &u32| self.thread_run_ns(process, *thread);
        threads.iter().map(of_thread).sum()
    }

    /// For how long a thread of a process has run, in nanoseconds; 0 where there is none.
    pub fn thread_run_ns(&self, process: u32, thread: u32) -> u64 {
        let text = self.text(format!("proc/{process}/task/{thread}/schedstat"));
        let first = text.split(' ').next();
        first.and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// The memory of a process; 0 where there is no such process.
    pub fn process_memory(&self, process: u32) -> ProcessMemory {
        let text = self.text(format!("proc/{process}/smaps_rollup"));
        ProcessMemory {
            resident_bytes: kibibytes(&text, "Rss:") * 1024,
            proportional_bytes: kibibytes(&text, "Pss:") * 1024,
        }
    }
}

/// A row `cpuN user nice system idle iowait irq softirq steal ...`.
fn cpu_times(row: &str) -> Option<CpuTimes> {
    // "cpu" alone is the sum: a number has to follow at once.
    let mut fields = row.strip_prefix("cpu")?.split(' ');
    let cpu = fields.next()?.parse().ok()?;
    let times: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = times[..] else {
        return None;
    };
    Some(CpuTimes {
        cpu,
        busy_us: (user + nice + system + irq + softirq) * TICK_US,
        idle_us: (idle + iowait) * TICK_US,
        softirq_us: softirq * TICK_US,
        steal_us: steal * TICK_US,
    })
}
