//! The properties of the machine that affect figures: enough that another reader could set up the
//! same. Host names, addresses, and the kernel's command line (except known words) are left out.

use serde::{Deserialize, Serialize};
use turnpike_host::{Cache, Host, Interface, Kernel};

use crate::placement;
use crate::topology::Topology;

/// A group of facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// Name and value.
    pub(crate) rows: Vec<(String, String)>,
}

/// Kernel settings that affect the cost or the loss of connections.
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

/// Words of the kernel's command line that affect measurements and contain no names.
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

/// All sections.
pub(crate) fn sections(topology: &Topology) -> Vec<Section> {
    let host = Host::here();
    vec![
        processor(&host),
        kernel(&host.kernel()),
        settings(topology),
        limits(&host),
        network(&host),
    ]
}

fn section(title: &str, rows: Vec<(&str, String)>) -> Section {
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    Section {
        title: title.to_owned(),
        rows: rows.map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// The machine in letters, digits and dashes: a part of a folder's name.
pub(crate) fn slug() -> String {
    Host::here().slug(placement::allowed().len())
}

fn processor(host: &Host) -> Section {
    let processor = host.processor();
    let cache = |cache: &Cache| {
        format!(
            "level {} {}, {}, CPUs {:?}",
            cache.level, cache.kind, cache.size, cache.cpus
        )
    };
    let caches: Vec<String> = processor.caches.iter().map(cache).collect();
    let allowed = placement::allowed();
    let rows = vec![
        ("model", processor.model.clone()),
        ("CPUs online", processor.cpus.len().to_string()),
        (
            "CPUs that we may use",
            format!("{} ({allowed:?})", allowed.len()),
        ),
        (
            "threads of a core",
            processor.threads_per_core().to_string(),
        ),
        ("packages", processor.packages().to_string()),
        ("NUMA nodes", processor.nodes().to_string()),
        ("caches of CPU 0", caches.join("; ")),
        (
            "frequency governor",
            processor.frequency_governor.unwrap_or_default(),
        ),
        (
            "virtual machine",
            if processor.is_guest { "yes" } else { "no" }.to_owned(),
        ),
        (
            "memory",
            format!("{} MiB", host.memory().total_bytes / (1024 * 1024)),
        ),
    ];
    section("Processor", rows)
}

fn kernel(kernel: &Kernel) -> Section {
    let known = |word: &&String| KERNEL_WORDS.iter().any(|known| word.starts_with(known));
    let words: Vec<&str> = kernel
        .command_line
        .iter()
        .filter(known)
        .map(String::as_str)
        .collect();
    let rows = vec![
        ("version", kernel.version().to_owned()),
        ("clock source", kernel.clock_source.clone()),
        ("preemption", kernel.preemption.clone()),
        ("huge pages", kernel.huge_pages.clone()),
        ("command line, as far as it matters", words.join(" ")),
        ("mitigations", mitigations(kernel)),
    ];
    section("Kernel", rows)
}

/// Mitigations that cost time here; those that do not affect the CPU are counted.
fn mitigations(kernel: &Kernel) -> String {
    let known = kernel.vulnerabilities.iter();
    let (unaffected, affected): (Vec<_>, Vec<_>) =
        known.partition(|(_, state)| state == "Not affected");
    let mut parts: Vec<String> = affected
        .iter()
        .map(|(name, state)| format!("{name}: {state}"))
        .collect();
    parts.push(format!("{} not affected", unaffected.len()));
    parts.join("; ")
}

/// The settings in the server's namespace.
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

/// The limits of this process, and of its control groups.
fn limits(host: &Host) -> Section {
    let row = |name: &str| host.limit(name).unwrap_or_default();
    let group = host.cgroup();
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let rows = vec![
        ("open files (soft, hard)", row("Max open files")),
        ("locked memory (soft, hard)", row("Max locked memory")),
        ("processes (soft, hard)", row("Max processes")),
        (
            "CPUs' worth of time",
            group
                .cpu_quota
                .map_or_else(String::new, |quota| format!("{quota:.2}")),
        ),
        (
            "memory of the control group in bytes",
            number(group.memory_bytes_max).unwrap_or_default(),
        ),
        (
            "tasks of the control group",
            number(group.tasks_max).unwrap_or_default(),
        ),
    ];
    section("Limits", rows)
}

/// Interfaces by kind, driver, speed and queues; no addresses.
fn network(host: &Host) -> Section {
    let row = |interface: Interface| {
        let mut value = format!(
            "driver {}, {} receive and {} transmit queues, MTU {}",
            interface.driver.as_deref().unwrap_or("none"),
            interface.receive_queues,
            interface.transmit_queues,
            interface.mtu.unwrap_or_default(),
        );
        if let Some(speed) = interface.speed.filter(|speed| *speed > 0) {
            value.push_str(&format!(", {speed} Mbit/s"));
        }
        (interface.name, value)
    };
    Section {
        title: "Network interfaces".to_owned(),
        rows: host.interfaces().into_iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests;
