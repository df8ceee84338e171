//! The kernel: its version and what it was told at its start.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// The kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kernel {
    /// The whole release, which may name who built it.
    pub release: String,
    pub clock_source: String,
    /// The model of preemption, where it is shown; root alone may see it.
    pub preemption: String,
    /// Transparent huge pages: the choices, that in force in brackets.
    pub huge_pages: String,
    /// The words of its command line. They may name this machine.
    pub command_line: Vec<String>,
    /// Vulnerabilities of the processors and what is done about each.
    pub vulnerabilities: Vec<(String, String)>,
}

impl Host {
    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        let folder = "sys/devices/system/cpu/vulnerabilities";
        let vulnerabilities = self.names(folder).into_iter().map(|name| {
            let state = self.line(format!("{folder}/{name}"));
            (name, state)
        });
        let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let command_line = self.text("proc/cmdline");
        Kernel {
            release: self.line("proc/sys/kernel/osrelease"),
            clock_source: self.line(source),
            preemption: self.line("sys/kernel/debug/sched/preempt"),
            huge_pages: self.line("sys/kernel/mm/transparent_hugepage/enabled"),
            command_line: command_line.split_whitespace().map(str::to_owned).collect(),
            vulnerabilities: vulnerabilities.collect(),
        }
    }
}

impl Kernel {
    /// The numbers of the release: the rest names who built it.
    pub fn version(&self) -> &str {
        self.release.split('-').next().unwrap_or_default()
    }
}
