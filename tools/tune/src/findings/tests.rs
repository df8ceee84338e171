#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::row::Severity;

/// A machine with nothing to say of.
fn quiet() -> Value {
    serde_json::from_str(include_str!("../../machines/well-tuned.json")).unwrap()
}

/// Lays one object over another, level by level; what is `null` is taken out.
fn lay(over: &Value, onto: &mut Value) {
    match (over, onto) {
        (Value::Object(over), Value::Object(onto)) => {
            for (name, value) in over {
                match value {
                    Value::Null => drop(onto.remove(name)),
                    _ => lay(value, onto.entry(name).or_insert(json!({}))),
                }
            }
        }
        (over, onto) => *onto = over.clone(),
    }
}

fn facts(over: &Value) -> Facts {
    let mut all = quiet();
    lay(over, &mut all);
    serde_json::from_value(all).unwrap()
}

/// A finding, the figure that it has to show, and what differs from the quiet machine.
type Case = (&'static str, Severity, &'static str, Value);

/// All cases.
fn cases() -> Vec<Case> {
    let mut cases = network_cases();
    cases.extend(queue_cases());
    cases.extend(packet_cases());
    cases.extend(port_cases());
    cases.extend(worker_cases());
    cases.extend(control_group_cases());
    cases.extend(processor_cases());
    cases.extend(server_cases());
    cases.extend(machine_cases());
    cases.extend(folklore_cases());
    cases
}

fn setting(name: &str, value: &str) -> Value {
    json!({ "settings": { name: value } })
}

use Severity::{Note, Problem, Warning};

fn queue_cases() -> Vec<Case> {
    let counter = |name: &str, count: u64| json!({ "counters": { name: count } });
    vec![
        (
            "listen-queue-overflow",
            Problem,
            "7 overflows",
            counter("TcpExt.ListenOverflows", 7),
        ),
        (
            "listen-queue-overflow",
            Problem,
            "port 80: 129 of 128",
            json!({ "listeners": [{ "port": 80, "waiting": 129, "backlog": 128 }] }),
        ),
        (
            "backlog-capped",
            Warning,
            "65535 in t.conf:8",
            setting("net.core.somaxconn", "4096"),
        ),
        (
            "somaxconn-low",
            Note,
            "is 4096",
            setting("net.core.somaxconn", "4096"),
        ),
        (
            "somaxconn-low",
            Warning,
            "is 128",
            setting("net.core.somaxconn", "128"),
        ),
        (
            "syn-cookies-sent",
            Problem,
            "31 cookies",
            counter("TcpExt.SyncookiesSent", 31),
        ),
        (
            "syn-cookies-always",
            Warning,
            "is 2",
            setting("net.ipv4.tcp_syncookies", "2"),
        ),
        (
            "abort-on-overflow",
            Warning,
            "is 1",
            setting("net.ipv4.tcp_abort_on_overflow", "1"),
        ),
    ]
}

fn port_cases() -> Vec<Case> {
    let counter = |name: &str, count: u64| json!({ "counters": { name: count } });
    vec![
        (
            "ports-narrow",
            Note,
            "28232 ports, 470 a second",
            setting("net.ipv4.ip_local_port_range", "32768 60999"),
        ),
        (
            "ports-narrow",
            Problem,
            "5 times",
            json!({ "settings": { "net.ipv4.ip_local_port_range": "32768 60999" },
                    "symptoms": { "no_ports": 5 } }),
        ),
        (
            "time-wait-full",
            Warning,
            "9 destroyed",
            counter("TcpExt.TCPTimeWaitOverflow", 9),
        ),
        (
            "time-wait-ports",
            Note,
            "60000 sockets",
            json!({ "sockets": { "time_wait": 60000 } }),
        ),
    ]
}

fn network_cases() -> Vec<Case> {
    let work = |first: u64, second: u64| {
        let cpu = |cpu: usize, packets: u64| json!({ "cpu": cpu, "packets": packets });
        json!([cpu(0, first), cpu(1, second)])
    };
    let times = json!([{ "cpu": 0, "softirq_us": 900_000 }]);
    let sample = json!({ "seconds": 1.0, "packet_work": work(9000, 10), "cpu_times": times });
    let one = |extra: Value| {
        let mut card = json!({ "name": "eth0", "driver": "igb", "receive_queues": 1,
            "receive_masks": ["0"] });
        lay(&extra, &mut card);
        json!({ "interfaces": [card] })
    };
    let interrupt = |number: u32| {
        let name = format!("eth0-TxRx-{number}");
        json!({ "number": number, "name": name, "effective": [3] })
    };
    let interrupts: Vec<Value> = (200..208).map(interrupt).collect();
    vec![
        (
            "softirq-one-cpu",
            Note,
            "since the start",
            json!({ "packet_work": work(9000, 10) }),
        ),
        (
            "softirq-one-cpu",
            Problem,
            "used 90 %",
            json!({ "sample": sample }),
        ),
        (
            "queues-without-rps",
            Note,
            "1 receive queues, 8 CPUs",
            one(json!({})),
        ),
        (
            "interrupts-together",
            Warning,
            "8 queues interrupt 1",
            json!({ "interrupts": interrupts }),
        ),
        (
            "irqbalance-runs",
            Note,
            "process 9",
            json!({ "programs": [{ "process": 9, "name": "irqbalance" }] }),
        ),
    ]
}

fn packet_cases() -> Vec<Case> {
    let squeezed = json!([{ "cpu": 0, "packets": 5000, "squeezed": 50 }]);
    vec![
        (
            "packets-dropped",
            Problem,
            "3 packets",
            json!({ "packet_work": [{ "dropped": 3 }] }),
        ),
        (
            "packets-squeezed",
            Note,
            "50 times in 5000",
            json!({ "packet_work": squeezed }),
        ),
        (
            "card-on-other-node",
            Note,
            "node 1 of 2",
            json!({
                "interfaces": [
                    { "name": "eth0", "driver": "igb", "receive_queues": 8, "node": 1 }
                ],
                "processor": { "cpus": [{ "number": 0 }, { "number": 1, "node": 1 }] }
            }),
        ),
    ]
}

fn server_cases() -> Vec<Case> {
    let of = |configuration: Value| json!({ "configuration": configuration });
    let log = json!([{ "path": "/a.log", "place": "t.conf:6" }]);
    vec![
        (
            "access-log-unbuffered",
            Warning,
            "/a.log in t.conf:6",
            of(json!({ "access_logs": log })),
        ),
        (
            "accept-mutex-on",
            Warning,
            "in t.conf:5",
            of(json!({ "accept_mutex": true, "accept_mutex_at": "t.conf:5" })),
        ),
        (
            "open-file-cache-off",
            Note,
            "t.conf:9",
            of(json!({ "open_file_cache": false })),
        ),
    ]
}

fn worker_cases() -> Vec<Case> {
    let of = |configuration: Value| json!({ "configuration": configuration });
    let word = |text: &str| json!({ "text": text, "place": "t.conf:3" });
    let listen = json!([{ "address": "80", "backlog": 511, "place": "t.conf:8" }]);
    vec![
        (
            "workers-few",
            Warning,
            "worker_processes 1",
            of(json!({ "workers": word("1") })),
        ),
        (
            "workers-few",
            Note,
            "8 CPUs",
            of(json!({ "workers": word("4") })),
        ),
        (
            "workers-many",
            Warning,
            "worker_processes 9",
            of(json!({ "workers": word("9") })),
        ),
        (
            "workers-not-pinned",
            Note,
            "8 workers",
            of(json!({ "affinity": null })),
        ),
        (
            "listen-shared",
            Note,
            "listen 80 in t.conf:8",
            of(json!({ "listens": listen })),
        ),
        (
            "upstream-without-keepalive",
            Warning,
            "t.conf:12",
            of(json!({ "proxies": ["t.conf:12"] })),
        ),
        (
            "worker-connections-low",
            Warning,
            "512",
            of(json!({ "connections": word("512") })),
        ),
        (
            "open-files-low",
            Warning,
            "is 1024",
            of(json!({ "open_files": word("1024") })),
        ),
    ]
}

fn machine_cases() -> Vec<Case> {
    let symptoms = |name: &str| json!({ "symptoms": { name: 4 } });
    let disk = json!([{ "path": "/a.log", "free_bytes": 1 << 20, "total_bytes": 1_u64 << 34 }]);
    let table = json!({ "net.netfilter.nf_conntrack_count": "90",
        "net.netfilter.nf_conntrack_max": "100" });
    let program =
        json!([{ "process": 5, "name": "nginx", "open_files": 99, "open_files_max": 100 }]);
    vec![
        (
            "too-many-open-files",
            Problem,
            "4 times",
            symptoms("too_many_open_files"),
        ),
        (
            "too-many-open-files",
            Problem,
            "99 of 100",
            json!({ "programs": program }),
        ),
        (
            "worker-connections-used-up",
            Problem,
            "4 times",
            symptoms("worker_connections"),
        ),
        ("log-disk-full", Problem, "4 times", symptoms("no_space")),
        (
            "log-disk-full",
            Warning,
            "1 of 16384 MiB",
            json!({ "disks": disk }),
        ),
        (
            "conntrack-full",
            Problem,
            "90 of 100",
            json!({ "settings": table }),
        ),
        (
            "tcp-memory",
            Problem,
            "2 times",
            json!({ "counters": { "TcpExt.TCPMemoryPressures": 2 } }),
        ),
    ]
}

fn control_group_cases() -> Vec<Case> {
    vec![
        (
            "cgroup-cpu",
            Note,
            "8 CPUs of 8",
            json!({ "cgroup": { "cpu_quota": 8.0 } }),
        ),
        (
            "cgroup-tasks",
            Warning,
            "at most 20",
            json!({ "cgroup": { "tasks_max": 20 } }),
        ),
        (
            "memory-pressure",
            Warning,
            "9.5 %",
            json!({ "pressure": { "memory_some": 9.5 } }),
        ),
    ]
}

fn processor_cases() -> Vec<Case> {
    let processor = |governor: &str| json!({ "processor": { "frequency_governor": governor } });
    let active = json!([["spectre_v2", "Mitigation: Retpolines"]]);
    let stolen = json!([{ "busy_us": 50, "idle_us": 40, "steal_us": 10 }]);
    vec![
        (
            "frequency-saving",
            Note,
            "powersave",
            processor("powersave"),
        ),
        (
            "clock-slow",
            Warning,
            "hpet",
            json!({ "kernel": { "clock_source": "hpet" } }),
        ),
        (
            "mitigations",
            Note,
            "1 of 1: spectre_v2",
            json!({ "kernel": { "vulnerabilities": active } }),
        ),
        (
            "hypervisor-takes",
            Warning,
            "10 %",
            json!({ "sample": { "cpu_times": stolen } }),
        ),
        (
            "cpus-full",
            Note,
            "90.1 %",
            json!({ "pressure": { "cpu_some": 90.1 } }),
        ),
        (
            "cpus-offline",
            Note,
            "2 of 8",
            json!({ "cgroup": { "cpus": [0, 1] } }),
        ),
    ]
}

fn folklore_cases() -> Vec<Case> {
    let lines = |lines: &[(usize, &str, &str)]| {
        let line = |(line, name, value): &(usize, &str, &str)| {
            let file = "/etc/s.conf";
            json!({ "file": file, "line": line, "name": name, "value": value })
        };
        json!({ "setting_lines": lines.iter().map(line).collect::<Vec<Value>>() })
    };
    let recycle = "net.ipv4.tcp_tw_recycle";
    vec![
        (
            "folklore-tw-recycle",
            Note,
            "s.conf:2",
            lines(&[(2, recycle, "1")]),
        ),
        (
            "folklore-tw-recycle",
            Problem,
            "is on",
            setting(recycle, "1"),
        ),
        (
            "folklore-tw-reuse",
            Note,
            "s.conf:1",
            lines(&[(1, "net.ipv4.tcp_tw_reuse", "1")]),
        ),
        (
            "folklore-fin-timeout",
            Note,
            "is 5",
            setting("net.ipv4.tcp_fin_timeout", "5"),
        ),
        (
            "folklore-dead-settings",
            Note,
            "tcp_fack in",
            lines(&[(3, "net.ipv4.tcp_fack", "1")]),
        ),
        (
            "settings-contradict",
            Note,
            "1 in /etc/s.conf:1, then 2 in /etc/s.conf:2",
            lines(&[(1, "vm.swappiness", "1"), (2, "vm.swappiness", "2")]),
        ),
        (
            "settings-overridden",
            Note,
            "is 65535, /etc/s.conf:1 says 1",
            lines(&[(1, "net.core.somaxconn", "1")]),
        ),
        (
            "timestamps-off",
            Warning,
            "is 0",
            setting("net.ipv4.tcp_timestamps", "0"),
        ),
    ]
}

#[test]
fn each_row_is_found_with_its_figures_and_only_when_there_is_reason() {
    assert!(judge(&facts(&json!({}))).is_empty());
    for (id, severity, figure, over) in cases() {
        let found = judge(&facts(&over));
        let finding = found.iter().find(|finding| finding.row.id == id);
        let finding = finding.unwrap_or_else(|| panic!("{id} is not found for {over}"));
        let seen = &finding.seen;
        assert_eq!(seen.severity, severity, "{id}");
        assert!(seen.evidence.contains(figure), "{id}: {}", seen.evidence);
    }
}

#[test]
fn every_row_has_a_case_and_a_page_of_its_own() {
    let covered: BTreeSet<&str> = cases().iter().map(|case| case.0).collect();
    let ids: Vec<&str> = rows().map(|row| row.id).collect();
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len(), "an id is there twice");
    assert_eq!(covered, distinct);
    let reference = crate::reference();
    for row in rows() {
        assert!(
            reference.contains(&format!("\n### {}\n", row.id)),
            "{}",
            row.id
        );
        for text in [row.title, row.why, row.fix, row.effect, row.source] {
            assert!(reference.contains(text) && !text.is_empty(), "{}", row.id);
        }
    }
}

/// Recorded machines, and what is found on each, the worst first.
const MACHINES: &[(&str, &str, &[&str])] = &[
    (
        "small-cloud-vm",
        include_str!("../../machines/small-cloud-vm.json"),
        &[
            "somaxconn-low",
            "ports-narrow",
            "softirq-one-cpu",
            "queues-without-rps",
            "mitigations",
        ],
    ),
    (
        "two-socket-24-cpus",
        include_str!("../../machines/two-socket-24-cpus.json"),
        &[
            "listen-queue-overflow",
            "syn-cookies-sent",
            "too-many-open-files",
            "softirq-one-cpu",
            "somaxconn-low",
            "interrupts-together",
            "ports-narrow",
            "irqbalance-runs",
            "packets-squeezed",
            "card-on-other-node",
            "frequency-saving",
            "mitigations",
        ],
    ),
    (
        "container",
        include_str!("../../machines/container.json"),
        &[
            "cgroup-cpu",
            "workers-many",
            "somaxconn-low",
            "ports-narrow",
        ],
    ),
    (
        "pod-with-cpuset",
        include_str!("../../machines/pod-with-cpuset.json"),
        &["workers-many", "cpus-offline", "ports-narrow"],
    ),
    (
        "folklore-server",
        include_str!("../../machines/folklore-server.json"),
        &[
            "timestamps-off",
            "queues-without-rps",
            "folklore-tw-recycle",
            "folklore-tw-reuse",
            "folklore-fin-timeout",
            "folklore-dead-settings",
            "settings-contradict",
            "settings-overridden",
        ],
    ),
    (
        "proxy-out-of-ports",
        include_str!("../../machines/proxy-out-of-ports.json"),
        &[
            "ports-narrow",
            "time-wait-full",
            "upstream-without-keepalive",
            "time-wait-ports",
        ],
    ),
    (
        "full-disk",
        include_str!("../../machines/full-disk.json"),
        &[
            "too-many-open-files",
            "worker-connections-used-up",
            "log-disk-full",
            "worker-connections-low",
            "access-log-unbuffered",
            "accept-mutex-on",
            "workers-few",
            "open-file-cache-off",
            "workers-not-pinned",
            "listen-shared",
            "frequency-saving",
        ],
    ),
    (
        "conntrack-firewall",
        include_str!("../../machines/conntrack-firewall.json"),
        &[
            "conntrack-full",
            "tcp-memory",
            "packets-dropped",
            "syn-cookies-always",
            "abort-on-overflow",
        ],
    ),
    (
        "noisy-guest",
        include_str!("../../machines/noisy-guest.json"),
        &[
            "folklore-tw-recycle",
            "somaxconn-low",
            "memory-pressure",
            "clock-slow",
            "hypervisor-takes",
            "ports-narrow",
            "cpus-full",
        ],
    ),
    (
        "well-tuned",
        include_str!("../../machines/well-tuned.json"),
        &[],
    ),
    (
        "one-cpu",
        include_str!("../../machines/one-cpu.json"),
        &["somaxconn-low"],
    ),
];

#[test]
fn recorded_machines_have_the_expected_findings() {
    for (name, text, expected) in MACHINES {
        let facts: Facts = serde_json::from_str(text).unwrap();
        let ids: Vec<&str> = judge(&facts).iter().map(|finding| finding.row.id).collect();
        assert_eq!(ids, *expected, "{name}");
    }
}

#[test]
fn what_cannot_be_done_says_why() {
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("small-cloud-vm", "queues-without-rps", None),
        (
            "container",
            "somaxconn-low",
            Some("read-only in this container"),
        ),
        ("one-cpu", "somaxconn-low", Some("root is needed")),
        (
            "conntrack-firewall",
            "conntrack-full",
            Some("root is needed"),
        ),
    ];
    for (machine, id, expected) in cases {
        let (_, text, _) = MACHINES.iter().find(|row| row.0 == *machine).unwrap();
        let found = judge(&serde_json::from_str(text).unwrap());
        let finding = found.iter().find(|finding| finding.row.id == *id).unwrap();
        match (expected, &finding.obstacle) {
            (None, None) => {}
            (Some(words), Some(obstacle)) => assert!(obstacle.contains(words), "{obstacle}"),
            (_, obstacle) => panic!("{machine}: {obstacle:?}"),
        }
    }
}

#[test]
fn masks_are_written_as_the_kernel_does() {
    let cases = [(0b11, "3"), (0xff_ffff, "ffffff"), (1 << 32, "1,00000000")];
    for (bits, expected) in cases {
        assert_eq!(network::mask(bits), expected);
    }
}
