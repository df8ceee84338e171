//! What is known of a machine, as data: read once, kept as JSON, judged elsewhere.
//!
//! A machine is read through `turnpike_host`. What is recorded of another machine is judged as this
//! one is, so nothing here may decide anything, and no address or name of a machine is kept.

pub(crate) mod configuration;
mod logs;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use turnpike_host::{
    Cgroup, CpuTimes, Disk, Host, Interface, Interrupt, Kernel, Listener, Memory, PacketWork,
    Pressure, Processor, Program, SocketCounts,
};

use configuration::Configuration;
pub(crate) use logs::LogSymptoms;
pub(crate) use settings::SettingLine;

/// The version of the format; a change of a field's meaning changes it.
pub(crate) const SCHEMA: &str = "turnpike-tune-facts/1";

/// Programs that are looked for: the servers that can be tuned, and what undoes their tuning.
const PROGRAMS: &[&str] = &["nginx", "turnpike", "irqbalance", "tuned", "firewalld"];

/// Everything that the findings and the plan are made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    pub(crate) schema: String,
    pub(crate) kernel: Kernel,
    pub(crate) processor: Processor,
    pub(crate) memory: Memory,
    pub(crate) cgroup: Cgroup,
    pub(crate) rights: Rights,
    /// The limit of open files of this process, which servers started from here inherit.
    pub(crate) open_files_max: Option<u64>,
    /// Kernel settings by name, such as `net.core.somaxconn`.
    pub(crate) settings: BTreeMap<String, String>,
    /// Settings as the files of the distribution write them, in the order in which they apply.
    pub(crate) setting_lines: Vec<SettingLine>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) packet_work: Vec<PacketWork>,
    /// Counters of the network stack since the start, those that are 0 left out.
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) sockets: SocketCounts,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) programs: Vec<Program>,
    pub(crate) pressure: Pressure,
    /// What happened while we looked.
    pub(crate) sample: Sample,
    pub(crate) configuration: Option<Configuration>,
    /// What the error logs of the configuration complain of.
    pub(crate) symptoms: LogSymptoms,
    /// The disks that its logs are written to.
    pub(crate) disks: Vec<Disk>,
}

/// What this process may do here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Rights {
    pub(crate) is_root: bool,
    /// `/proc/sys` is mounted read-only, as in most containers.
    pub(crate) settings_read_only: bool,
    /// Inside a container: the machine belongs to somebody else.
    pub(crate) is_container: bool,
}

/// The growth of counters during some seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) packet_work: Vec<PacketWork>,
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) cpu_times: Vec<CpuTimes>,
}

/// Settings that findings look at, by their paths below `/proc/sys`.
const SETTINGS: &[&str] = &[
    "fs/file-max",
    "fs/nr_open",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/core/default_qdisc",
    "net/core/netdev_budget",
    "net/core/netdev_max_backlog",
    "net/core/rps_sock_flow_entries",
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/tcp_autocorking",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_low_latency",
    "net/ipv4/tcp_max_orphans",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_migrate_req",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_tw_recycle",
    "net/ipv4/tcp_tw_reuse",
    "net/netfilter/nf_conntrack_count",
    "net/netfilter/nf_conntrack_max",
];

/// Reads a machine. For `seconds` it is watched; 0 leaves the sample empty.
pub(crate) fn read(host: &Host, root: &Path, seconds: f64) -> Facts {
    let before = Counted::now(host);
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    let after = Counted::now(host);
    let sample = if seconds > 0.0 {
        after.since(&before, seconds)
    } else {
        Sample::default()
    };
    let limit = host.limit("Max open files").unwrap_or_default();
    Facts {
        schema: SCHEMA.to_owned(),
        kernel: kernel(host),
        processor: host.processor(),
        memory: host.memory(),
        cgroup: host.cgroup(),
        rights: rights(host, root),
        open_files_max: limit.split(' ').next().and_then(|word| word.parse().ok()),
        settings: host.settings(SETTINGS),
        setting_lines: settings::lines(root),
        interfaces: host.interfaces(),
        interrupts: host.interrupts(),
        packet_work: after.packet_work,
        counters: after.counters,
        sockets: host.socket_counts(),
        listeners: host.listeners(),
        programs: host.programs(PROGRAMS),
        pressure: host.pressure(),
        sample,
        ..Facts::default()
    }
}

impl Facts {
    /// Adds a server's configuration, and what its logs and disks say.
    ///
    /// # Errors
    /// The configuration cannot be read; the text has file and line.
    pub(crate) fn add_configuration(&mut self, host: &Host, file: &Path) -> Result<(), String> {
        let configuration = configuration::read(file)?;
        self.symptoms = logs::read(&configuration.error_logs);
        let mut files: Vec<&str> = configuration
            .access_logs
            .iter()
            .map(|log| log.path.as_str())
            .collect();
        files.extend(configuration.error_logs.iter().map(String::as_str));
        files.sort_unstable();
        files.dedup();
        let disks = files
            .iter()
            .filter_map(|path| host.disk(&PathBuf::from(path)));
        self.disks = disks.collect();
        self.configuration = Some(configuration);
        Ok(())
    }

    /// A setting's value.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// A setting's number; of several, the first.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.split(' ').next()?.parse().ok()
    }

    /// A counter since the start.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// How many CPUs a server here may use: those online, or fewer by a control group.
    pub(crate) fn usable_cpus(&self) -> usize {
        let online = self.processor.cpus.len();
        let allowed = self.cgroup.cpus.as_ref().map_or(online, Vec::len);
        let quota = self.cgroup.cpu_quota.map(|quota| quota.ceil() as usize);
        allowed.min(quota.unwrap_or(allowed)).min(online).max(1)
    }

    /// Whether the kernel is at least this version.
    pub(crate) fn kernel_is_from(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.kernel.version().split('.').map(str::parse::<u32>);
        let mut part = || parts.next().and_then(Result::ok).unwrap_or(0);
        (part(), part()) >= (major, minor)
    }

    /// The programs of this name that run.
    pub(crate) fn running(&self, name: &str) -> impl Iterator<Item = &Program> {
        self.programs
            .iter()
            .filter(move |program| program.name == name)
    }

    /// The machine in a line.
    pub(crate) fn machine(&self) -> String {
        let processor = &self.processor;
        let kind = match (self.rights.is_container, processor.is_guest) {
            (true, _) => ", in a container",
            (false, true) => ", a virtual machine",
            (false, false) => "",
        };
        let gib = self.memory.total_bytes as f64 / f64::from(1 << 30);
        format!(
            "Linux {}; {} in {}, {} per core ({}); {gib:.1} GiB{kind}",
            self.kernel.version(),
            counted(processor.cpus.len(), "CPU"),
            counted(processor.packages(), "processor"),
            counted(processor.threads_per_core(), "thread"),
            processor.model,
        )
    }
}

/// A number of things: `1 CPU`, `2 CPUs`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Counters at a moment.
struct Counted {
    packet_work: Vec<PacketWork>,
    counters: BTreeMap<String, u64>,
    cpu_times: Vec<CpuTimes>,
}

impl Counted {
    fn now(host: &Host) -> Counted {
        Counted {
            packet_work: host.packet_work(),
            counters: host.network_counters(),
            cpu_times: host.cpu_times(),
        }
    }

    fn since(&self, before: &Counted, seconds: f64) -> Sample {
        let packet_work = self.packet_work.iter().zip(&before.packet_work);
        let packet_work = packet_work.map(|(now, then)| PacketWork {
            cpu: now.cpu,
            receive_runs: now.receive_runs.saturating_sub(then.receive_runs),
            packets: now.packets.saturating_sub(then.packets),
            dropped: now.dropped.saturating_sub(then.dropped),
            squeezed: now.squeezed.saturating_sub(then.squeezed),
        });
        let cpu_times = self.cpu_times.iter().zip(&before.cpu_times);
        let cpu_times = cpu_times.map(|(now, then)| CpuTimes {
            cpu: now.cpu,
            busy_us: now.busy_us.saturating_sub(then.busy_us),
            idle_us: now.idle_us.saturating_sub(then.idle_us),
            softirq_us: now.softirq_us.saturating_sub(then.softirq_us),
            steal_us: now.steal_us.saturating_sub(then.steal_us),
        });
        let grown = self.counters.iter().filter_map(|(name, now)| {
            let then = before.counters.get(name).copied().unwrap_or(0);
            let growth = now.saturating_sub(then);
            (growth > 0).then(|| (name.clone(), growth))
        });
        Sample {
            seconds,
            packet_work: packet_work.collect(),
            counters: grown.collect(),
            cpu_times: cpu_times.collect(),
        }
    }
}

/// The kernel without its command line, which may name the machine; of it only one word counts.
fn kernel(host: &Host) -> Kernel {
    let mut kernel = host.kernel();
    kernel
        .command_line
        .retain(|word| word.starts_with("mitigations="));
    kernel
}

fn rights(host: &Host, root: &Path) -> Rights {
    let mounts = std::fs::read_to_string(root.join("proc/self/mounts")).unwrap_or_default();
    let read_only = mounts.lines().any(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let is_settings = matches!(words.get(1), Some(&"/proc/sys"));
        is_settings
            && words
                .get(3)
                .is_some_and(|options| options.split(',').any(|one| one == "ro"))
    });
    // The first namespace of processes has this number on every kernel.
    let namespace = std::fs::read_link(root.join("proc/self/ns/pid"));
    let is_first = namespace.is_ok_and(|link| link.as_os_str() == "pid:[4026531836]");
    let markers = [".dockerenv", "run/.containerenv"];
    let is_marked = markers.iter().any(|marker| root.join(marker).exists());
    Rights {
        // A recorded or imitated tree belongs to whoever made it.
        is_root: !host.is_here() || nix::unistd::geteuid().is_root(),
        settings_read_only: read_only,
        is_container: is_marked && !is_first,
    }
}
