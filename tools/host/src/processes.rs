//! Processes as the kernel describes them: their states, parents and descendants, and this one.

use std::collections::BTreeMap;

use crate::host::{Host, list};
use crate::memory::kibibytes;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub parent: u32,
    /// The kernel's letter: `R` for running, `S` for sleeping, `Z` for ended and not waited for.
    pub state: char,
    /// When it was started, in ticks since the machine was: with its number it names one process
    /// only.
    pub started_ticks: u64,
}

impl Process {
    /// Whether it has not ended.
    pub fn is_alive(self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

impl Host {
    /// A process; `None` where there is none of this number.
    pub fn process(&self, process: u32) -> Option<Process> {
        let text = self.text(format!("proc/{process}/stat"));
        // The name in parentheses may hold anything; what follows its last one is fields.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        Some(Process {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            started_ticks: fields.get(19)?.trim().parse().ok()?,
        })
    }

    /// A process and all that descend from it, parents before their children.
    pub fn family(&self, process: u32) -> Vec<u32> {
        let numbers = self.names("proc").into_iter();
        let numbers = numbers.filter_map(|name| name.parse::<u32>().ok());
        let parents: BTreeMap<u32, u32> = numbers
            .filter_map(|number| Some((number, self.process(number)?.parent)))
            .collect();
        let mut family = vec![process];
        let mut at = 0;
        while let Some(parent) = family.get(at).copied() {
            let children = parents.iter().filter(|(_, of)| **of == parent);
            family.extend(children.map(|(child, _)| *child));
            at += 1;
        }
        family
    }

    /// The CPUs that this process may use.
    pub fn own_cpus(&self) -> Vec<usize> {
        let status = self.text("proc/self/status");
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list(line.unwrap_or("0"))
    }

    /// The resident memory of this process, in bytes; 0 where the kernel does not tell.
    pub fn own_resident_bytes(&self) -> u64 {
        kibibytes(&self.text("proc/self/status"), "VmRSS:") * 1024
    }

    /// For how long this thread has run, and for how long it was ready but waited for a CPU, in
    /// nanoseconds; `None` where the kernel does not tell.
    pub fn own_thread_ns(&self) -> Option<(u64, u64)> {
        let text = self.text("proc/thread-self/schedstat");
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    }
}
