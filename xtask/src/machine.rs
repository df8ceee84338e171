//! What this machine is and what its processes and cores have done, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::process::Command;

/// The kernel's unit of processor time in /proc/stat: 100 ticks a second on every Linux we run on.
const TICK_US: u64 = 10_000;

/// Kernel settings that change what a connection costs; recorded with every run.
const SETTINGS: &[&str] = &[
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_max_orphans",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_fastopen",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/ip_local_port_range",
];

/// The processor's model, for people.
pub(crate) fn processor() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model
        .map_or("unknown processor", |(_, name)| name.trim())
        .to_owned()
}

/// The kernel's version, numbers only: the rest names who built it.
pub(crate) fn kernel() -> String {
    let text = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.split('-').next().unwrap_or_default().trim().to_owned()
}

/// How many CPUs are online.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor and kernel in letters, digits and dashes: the name of a folder.
pub(crate) fn slug() -> String {
    let name = format!("{}x{}-linux-{}", cpus(), processor(), kernel());
    let plain = name
        .to_lowercase()
        .replace(|byte: char| !byte.is_ascii_alphanumeric(), "-");
    plain
        .split('-')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

/// The settings that this kernel has, by name.
pub(crate) fn settings() -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for name in SETTINGS {
        if let Ok(value) = read_to_string(format!("/proc/sys/{name}")) {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            settings.insert(name.replace('/', "."), value);
        }
    }
    settings
}

/// Microseconds for which a core was not idle since start: all but idle, iowait and steal.
pub(crate) fn core_busy_us(cpu: usize) -> u64 {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{cpu}");
    let row = text
        .lines()
        .find(|line| line.split(' ').next() == Some(&name))
        .unwrap_or_default();
    let fields: Vec<u64> = row
        .split(' ')
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system - - irq softirq
    [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|at| fields.get(*at))
        .sum::<u64>()
        * TICK_US
}

/// Microseconds that every thread of a process has run since start.
pub(crate) fn process_us(pid: u32) -> u64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let run_ns = |task: std::fs::DirEntry| {
        let text = read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.flatten().filter_map(run_ns).sum::<u64>() / 1000
}

/// A process's memory in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Resident, shared pages in full.
    pub(crate) rss_kib: u64,
    /// Resident, shared pages by share.
    pub(crate) pss_kib: u64,
}

/// The memory of a process now.
pub(crate) fn memory(pid: u32) -> Memory {
    let text = read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Memory {
        rss_kib: field("Rss:").unwrap_or_default(),
        pss_kib: field("Pss:").unwrap_or_default(),
    }
}

/// The first line that a command prints, empty where it does not run.
pub(crate) fn first_line(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output();
    let said = output
        .map(|output| [output.stdout, output.stderr].concat())
        .unwrap_or_default();
    String::from_utf8_lossy(&said)
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Raises our limit of open files as far as we may; children inherit it.
pub(crate) fn raise_file_limit() -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    getrlimit(Resource::RLIMIT_NOFILE)
        .map_or(0, |(soft, _)| if raised.is_ok() { hard } else { soft })
}
