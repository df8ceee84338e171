//! The machine as far as it can change a figure: enough that another reader could set up the same.
//! Host names, addresses, and the kernel's command line (but for words known to matter) stay out.

use std::fs::read_to_string;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::placement;
use crate::topology::Topology;

/// A group of facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// Name and value.
    pub(crate) rows: Vec<(String, String)>,
}

/// Kernel settings that change what a connection costs or whether it is lost.
const SETTINGS: &[&str] = &[
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/core/default_qdisc",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_max_orphans",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/tcp_fastopen",
    "net/ipv4/tcp_autocorking",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_migrate_req",
    "net/ipv4/ip_local_port_range",
    "fs/file-max",
    "fs/nr_open",
    "kernel/perf_event_paranoid",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
];

/// Words of the kernel's command line that change measurements and name nobody.
const KERNEL_WORDS: &[&str] = &[
    "mitigations=",
    "isolcpus=",
    "nohz_full=",
    "rcu_nocbs=",
    "idle=",
    "intel_pstate=",
    "amd_pstate=",
    "nosmt",
    "transparent_hugepage=",
    "preempt=",
];

/// Everything.
pub(crate) fn sections(topology: &Topology) -> Vec<Section> {
    vec![
        processor(),
        kernel(),
        settings(topology),
        limits(),
        network(),
    ]
}

fn section(title: &str, rows: Vec<(&str, String)>) -> Section {
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    Section {
        title: title.to_owned(),
        rows: rows.map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

fn text(path: &str) -> String {
    let text = read_to_string(path).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The processor's model, for people.
pub(crate) fn model() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_once(": ")
            .map(|(_, value)| value.trim().to_owned())
    };
    field("model name")
        .or_else(|| field("CPU part"))
        .unwrap_or_else(|| "unknown processor".to_owned())
}

/// The kernel's version, numbers only: the rest names who built it.
pub(crate) fn kernel_version() -> String {
    let text = text("/proc/sys/kernel/osrelease");
    text.split('-').next().unwrap_or_default().to_owned()
}

/// The machine in letters, digits and dashes: a part of a folder's name.
pub(crate) fn slug() -> String {
    let cpus = placement::allowed().len();
    let name = format!("{cpus}x{}-linux-{}", model(), kernel_version());
    let plain = name.to_lowercase();
    let parts = plain.split(|byte: char| !byte.is_ascii_alphanumeric());
    parts
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

fn processor() -> Section {
    let cpu = "/sys/devices/system/cpu";
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_guest = info
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    let cache = |index: u32| {
        let folder = format!("{cpu}/cpu0/cache/index{index}");
        match text(&format!("{folder}/level")).as_str() {
            "" => String::new(),
            level => format!(
                "level {level} {}, {}, CPUs {}",
                text(&format!("{folder}/type")).to_lowercase(),
                text(&format!("{folder}/size")),
                text(&format!("{folder}/shared_cpu_list"))
            ),
        }
    };
    let caches = (0..4).map(cache).filter(|cache| !cache.is_empty());
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let allowed = placement::allowed();
    let rows = vec![
        ("model", model()),
        ("CPUs online", text(&format!("{cpu}/online"))),
        (
            "CPUs that we may use",
            format!("{} ({allowed:?})", allowed.len()),
        ),
        (
            "threads of core 0",
            text(&format!("{cpu}/cpu0/topology/thread_siblings_list")),
        ),
        (
            "cores of package 0",
            text(&format!("{cpu}/cpu0/topology/core_siblings_list")),
        ),
        ("NUMA nodes", text("/sys/devices/system/node/online")),
        ("caches of CPU 0", caches.collect::<Vec<_>>().join("; ")),
        (
            "frequency governor",
            text(&format!("{cpu}/cpu0/cpufreq/scaling_governor")),
        ),
        (
            "virtual machine",
            if is_guest { "yes" } else { "no" }.to_owned(),
        ),
        ("memory", memory.unwrap_or_default().trim().to_owned()),
    ];
    section("Processor", rows)
}

fn kernel() -> Section {
    let line = text("/proc/cmdline");
    let words: Vec<&str> = line
        .split(' ')
        .filter(|word| KERNEL_WORDS.iter().any(|known| word.starts_with(known)))
        .collect();
    let mut rows = vec![
        ("version", kernel_version()),
        (
            "clock source",
            text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        ("preemption", text("/sys/kernel/debug/sched/preempt")),
        (
            "huge pages",
            text("/sys/kernel/mm/transparent_hugepage/enabled"),
        ),
        ("command line, as far as it matters", words.join(" ")),
    ];
    rows.push(("mitigations", mitigations()));
    section("Kernel", rows)
}

/// Vulnerabilities that cost something here; the ones that do not affect the CPU are counted.
fn mitigations() -> String {
    let folder = Path::new("/sys/devices/system/cpu/vulnerabilities");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut known: Vec<(String, String)> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, text(&entry.path().display().to_string()))
        })
        .collect();
    known.sort();
    let unaffected = known
        .iter()
        .filter(|(_, state)| state == "Not affected")
        .count();
    known.retain(|(_, state)| state != "Not affected");
    let mut parts: Vec<String> = known
        .iter()
        .map(|(name, state)| format!("{name}: {state}"))
        .collect();
    parts.push(format!("{unaffected} not affected"));
    parts.join("; ")
}

/// As the server meets them: a namespace has its own.
fn settings(topology: &Topology) -> Section {
    let row = |name: &&str| {
        let value = topology.setting(name).unwrap_or_default();
        (name.replace('/', "."), value)
    };
    let rows = SETTINGS
        .iter()
        .map(row)
        .filter(|(_, value)| !value.is_empty());
    Section {
        title: "Kernel settings".to_owned(),
        rows: rows.collect(),
    }
}

fn limits() -> Section {
    let limits = read_to_string("/proc/self/limits").unwrap_or_default();
    let row = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let rows = vec![
        ("open files (soft, hard)", row("Max open files")),
        ("locked memory (soft, hard)", row("Max locked memory")),
        ("processes (soft, hard)", row("Max processes")),
    ];
    section("Limits", rows)
}

/// Interfaces by kind, driver, speed and queues; no addresses.
fn network() -> Section {
    let entries = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let mut rows: Vec<(String, String)> = entries
        .map(|entry| {
            let path = entry.path();
            let queues = std::fs::read_dir(path.join("queues"))
                .into_iter()
                .flatten()
                .flatten();
            let names: Vec<String> = queues
                .map(|queue| queue.file_name().to_string_lossy().into_owned())
                .collect();
            let count = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
            let driver = std::fs::read_link(path.join("device/driver"));
            let driver = driver.ok().and_then(|link| {
                link.file_name()
                    .map(|name| name.to_string_lossy().into_owned())
            });
            let speed = text(&path.join("speed").display().to_string());
            let mut value = format!(
                "driver {}, {} receive and {} transmit queues, MTU {}",
                driver.unwrap_or_else(|| "none".to_owned()),
                count("rx-"),
                count("tx-"),
                text(&path.join("mtu").display().to_string())
            );
            if speed.parse::<i64>().is_ok_and(|speed| speed > 0) {
                value.push_str(&format!(", {speed} Mbit/s"));
            }
            (entry.file_name().to_string_lossy().into_owned(), value)
        })
        .collect();
    rows.sort();
    Section {
        title: "Network interfaces".to_owned(),
        rows,
    }
}

/// Raises our limit of open files as far as we may; children inherit it.
pub(crate) fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

#[cfg(test)]
mod tests;
