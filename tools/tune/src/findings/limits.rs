//! Limits: open files, connections of a worker, memory, disks, control groups, conntrack.

use crate::change::Change;
use crate::facts::Facts;
use crate::row::{Row, Seen, WithChanges as _};

/// Open files for a busy server: what study S3 and S2 used.
const FILES: u64 = 1_000_000;
/// Free bytes below which an access log fills a disk within minutes at a high rate.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// The share of a table or a disk from which it counts as nearly full.
const NEARLY_FULL: f64 = 0.8;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "too-many-open-files",
        title: "A server has run out of open files",
        why: "accept4() fails with \"Too many open files\" once the process has as many \
              descriptors as its limit allows; connections then wait in the listen queue until it \
              overflows. This happened in study S3.",
        source: "study S3; getrlimit(2) (RLIMIT_NOFILE)",
        fix: "worker_rlimit_nofile 1000000; in the configuration, or LimitNOFILE=1000000 in a \
              drop-in of the service.",
        effect: "Connections are accepted again.",
        find: files_used_up,
    },
    Row {
        id: "open-files-low",
        title: "The limit of open files is below worker_connections",
        why: "Each connection is a descriptor, and a proxied one is two. A worker whose limit is \
              lower than worker_connections fails long before that limit.",
        source: "ngx_core_module (worker_rlimit_nofile); study S3 (open-file limit 1 M)",
        fix: "worker_rlimit_nofile: at least twice worker_connections.",
        effect: "worker_connections is the limit, as the configuration says.",
        find: files_low,
    },
    Row {
        id: "worker-connections-used-up",
        title: "worker_connections were not enough",
        why: "A worker that has worker_connections connections closes idle ones and then stops \
              accepting.",
        source: "study S3; ngx_core_module (worker_connections)",
        fix: "worker_connections 65536; with worker_rlimit_nofile twice as large.",
        effect: "No refused connections; idle connections are kept as long as keepalive_timeout \
                 says.",
        find: connections_used_up,
    },
    Row {
        id: "worker-connections-low",
        title: "worker_connections is small",
        why: "nginx's default of 512 connections for each worker counts clients and upstream \
              servers together. A page load opens six; a few hundred clients are enough.",
        source: "ngx_core_module (worker_connections); study S3 (524288), S2 (65536)",
        fix: "worker_connections 65536; an unused connection costs a few hundred bytes.",
        effect: "The number of clients is limited by memory alone.",
        find: connections_low,
    },
    Row {
        id: "log-disk-full",
        title: "The disk of a log is full, or nearly",
        why: "An access log of 200,000 requests a second grows by a gigabyte in a minute. Once the \
              disk is full each request pays for a write that fails. This happened in study S3.",
        source: "study S3 (no space left for the access log)",
        fix: "access_log off; or a buffer and a rotation; free the disk.",
        effect: "One failing system call less for each request.",
        find: disk_full,
    },
    Row {
        id: "conntrack-full",
        title: "The table of tracked connections is nearly full",
        why: "A firewall that tracks connections drops new ones when the table is full \
            (\"nf_conntrack: \
              table full, dropping packet\"), and looks each packet up in it.",
        source: "Documentation/networking/nf_conntrack-sysctl.rst",
        fix: "Do not track connections to the server's ports (a notrack rule in the raw table), or \
              raise net.netfilter.nf_conntrack_max.",
        effect: "No dropped handshakes; without tracking a few percent less work for each packet.",
        find: conntrack,
    },
    Row {
        id: "tcp-memory",
        title: "TCP has reached its limit of memory",
        why: "Beyond the second of the three values of tcp_mem the kernel shrinks windows; beyond \
              the third it drops data and connections.",
        source: "tcp(7) (tcp_mem)",
        fix: "More memory, fewer or smaller buffers, or larger values of net.ipv4.tcp_mem.",
        effect: "Connections keep their windows.",
        find: tcp_memory,
    },
    Row {
        id: "cgroup-cpu",
        title: "A control group limits the CPU time",
        why: "A group that has used its quota stops until the next period, of 100 ms as a rule: \
              every connection then waits, and the 99th percentile of latency with it.",
        source: "Documentation/admin-guide/cgroup-v2.rst (cpu.max)",
        fix: "As many workers as the quota allows CPUs; a quota of whole CPUs; or none.",
        effect: "Fewer and shorter stops.",
        find: quota,
    },
    Row {
        id: "cgroup-tasks",
        title: "A control group allows few processes and threads",
        why: "Workers and lanes count. Where they cannot be started, the server serves with fewer.",
        source: "Documentation/admin-guide/cgroup-v2.rst (pids.max)",
        fix: "Raise pids.max (TasksMax= of the service, --pids-limit of the container).",
        effect: "All workers start.",
        find: tasks,
    },
    Row {
        id: "memory-pressure",
        title: "The machine waits for memory",
        why: "While pages are reclaimed, accept and send wait too.",
        source: "Documentation/accounting/psi.rst",
        fix: "Find what uses the memory; fewer connections, smaller buffers or caches.",
        effect: "Latency without stalls.",
        find: pressure,
    },
];

fn files_used_up(facts: &Facts) -> Option<Seen> {
    let times = facts.symptoms.too_many_open_files;
    let servers = facts.programs.iter();
    let full = servers.clone().find(
        |program| match (program.open_files, program.open_files_max) {
            (Some(used), Some(limit)) => used as f64 > limit as f64 * NEARLY_FULL,
            _ => false,
        },
    );
    let changes: Vec<Change> = service(facts).into_iter().collect();
    match full {
        Some(program) => Seen::problem(format!(
            "{} (process {}) has {} of {} files open",
            program.name,
            program.process,
            program.open_files.unwrap_or(0),
            program.open_files_max.unwrap_or(0)
        )),
        None if times > 0 => Seen::problem(format!(
            "the error log says \"Too many open files\" {times} times"
        )),
        None => None,
    }
    .with(changes)
}

/// The drop-in for the server that runs here.
fn service(facts: &Facts) -> Option<Change> {
    let mut names = ["nginx", "turnpike"].into_iter();
    let service = names.find(|name| facts.running(name).next().is_some())?;
    Some(Change::ServiceFiles {
        service: service.to_owned(),
        files: FILES,
    })
}

fn files_low(facts: &Facts) -> Option<Seen> {
    let configuration = facts.configuration.as_ref()?;
    let connections = configuration.connections.number()?;
    let (limit, whose) = match configuration.open_files.number() {
        Some(limit) => (
            limit,
            format!("worker_rlimit_nofile in {}", configuration.open_files.place),
        ),
        None => {
            let inherited = facts.open_files_max?;
            let running = facts.running("nginx").chain(facts.running("turnpike"));
            let running = running.filter_map(|program| program.open_files_max).min();
            match running {
                Some(limit) => (limit, "the running server's limit".to_owned()),
                None => (
                    inherited,
                    "the limit that a server started here inherits".to_owned(),
                ),
            }
        }
    };
    if limit >= connections {
        return None;
    }
    Seen::warning(format!(
        "worker_connections {connections}, {whose} is {limit}"
    ))
    .with(service(facts).into_iter().collect())
}

fn connections_used_up(facts: &Facts) -> Option<Seen> {
    let times = facts.symptoms.worker_connections;
    (times > 0)
        .then(|| format!("the error log says it {times} times"))
        .and_then(Seen::problem)
}

fn connections_low(facts: &Facts) -> Option<Seen> {
    let connections = &facts.configuration.as_ref()?.connections;
    let count = connections.number().filter(|count| *count < 4096)?;
    Seen::warning(if connections.is_written() {
        format!("worker_connections {count} in {}", connections.place)
    } else {
        format!("worker_connections is not set: {count}")
    })
}

fn disk_full(facts: &Facts) -> Option<Seen> {
    let times = facts.symptoms.no_space;
    let disk = facts.disks.iter().min_by_key(|disk| disk.free_bytes);
    let low = disk.filter(|disk| {
        let used = disk.total_bytes.saturating_sub(disk.free_bytes) as f64;
        disk.free_bytes < FREE_BYTES_MIN && used > disk.total_bytes as f64 * NEARLY_FULL
    });
    let room = low.map(|disk| {
        let mib = |bytes: u64| bytes >> 20;
        let (free, total) = (mib(disk.free_bytes), mib(disk.total_bytes));
        format!("{}: {free} of {total} MiB are free", disk.path)
    });
    match (times, room) {
        (0, None) => None,
        (0, Some(room)) if low.is_some_and(|disk| disk.free_bytes == 0) => Seen::problem(room),
        (0, Some(room)) => Seen::warning(room),
        (times, room) => {
            let room = room.map(|room| format!("; {room}")).unwrap_or_default();
            Seen::problem(format!(
                "the error log says \"No space left on device\" {times} times{room}"
            ))
        }
    }
}

fn conntrack(facts: &Facts) -> Option<Seen> {
    let name = "net.netfilter.nf_conntrack_max";
    let count = facts.number("net.netfilter.nf_conntrack_count")?;
    let limit = facts.number(name).filter(|limit| *limit > 0)?;
    if (count as f64) < limit as f64 * NEARLY_FULL {
        return None;
    }
    Seen::problem(format!("{count} of {limit} entries"))
        .with(vec![Change::setting(name, (limit * 4).max(1_048_576))])
}

fn tcp_memory(facts: &Facts) -> Option<Seen> {
    let aborted = facts.counter("TcpExt.TCPAbortOnMemory");
    let pressed = facts.counter("TcpExt.TCPMemoryPressures");
    if aborted + pressed == 0 {
        return None;
    }
    let limit = facts.setting("net.ipv4.tcp_mem").unwrap_or("unknown");
    Seen::problem(format!(
        "{pressed} times under pressure, {aborted} connections ended by it; tcp_mem is {limit} \
            pages, \
         {} are in use",
        facts.sockets.memory_pages
    ))
}

fn quota(facts: &Facts) -> Option<Seen> {
    let quota = facts.cgroup.cpu_quota?;
    let online = facts.processor.cpus.len();
    let evidence = format!("{quota} CPUs of {online}");
    let workers = facts.configuration.as_ref().map(|all| &all.workers);
    match workers.filter(|word| {
        word.number()
            .is_some_and(|count| count as f64 > quota.ceil())
    }) {
        Some(word) => Seen::warning(format!(
            "{evidence}; worker_processes {} in {}",
            word.text, word.place
        )),
        None => Seen::note(evidence),
    }
}

fn tasks(facts: &Facts) -> Option<Seen> {
    let limit = facts.cgroup.tasks_max?;
    let wanted = 8 * facts.usable_cpus() as u64 + 64;
    (limit < wanted)
        .then(|| format!("at most {limit}, a server wants up to {wanted}"))
        .and_then(Seen::warning)
}

fn pressure(facts: &Facts) -> Option<Seen> {
    let (some, full) = (facts.pressure.memory_some, facts.pressure.memory_full);
    (some > 5.0)
        .then(|| {
            format!(
                "in the last ten seconds something waited for memory {some} % of the time, all \
            did {full} %"
            )
        })
        .and_then(Seen::warning)
}
