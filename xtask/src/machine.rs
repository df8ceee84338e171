//! The properties of this machine that are recorded with a run.

use std::process::Command;

use turnpike_host::Host;

/// How many CPUs are online.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor and kernel in letters, digits and dashes: the name of a folder.
pub(crate) fn slug() -> String {
    Host::here().slug(cpus())
}

/// Microseconds that every thread of a process has run since start.
pub(crate) fn process_us(pid: u32) -> u64 {
    Host::here().run_ns(pid) / 1000
}

/// The first line of a command's output; empty if it does not run.
pub(crate) fn first_line(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output();
    let text = output
        .map(|output| [output.stdout, output.stderr].concat())
        .unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}
