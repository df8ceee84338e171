//! Recorded trees of files, and this machine.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;

use turnpike_testkit::Folder;

use super::*;
use crate::host::{CPUS_MAX, list};

/// Two packages of two cores with two threads, near a memory node each, in a container.
const TREE: &[(&str, &str)] = &[
    (
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Example(R) CPU @ 2.00GHz\nflags\t\t: fpu hypervisor sse\n",
    ),
    ("proc/cmdline", "root=/dev/sda1 mitigations=off quiet\n"),
    ("proc/meminfo", "MemTotal:  16 kB\nMemAvailable:\t8 kB\n"),
    (
        "proc/stat",
        "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 10 0 0 0 0 0 0 0 0 0\nintr 5\n",
    ),
    (
        "proc/self/limits",
        "Max open files            1024   524288  files\n",
    ),
    ("proc/self/cgroup", "0::/kube/pod\n"),
    ("proc/7/task/7/schedstat", "1000 20 3\n"),
    ("proc/7/task/9/schedstat", "500 20 3\n"),
    ("proc/7/smaps_rollup", "Rss:  12 kB\nPss:   3 kB\n"),
    ("proc/sys/kernel/osrelease", "6.1.0-39-amd64\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("sys/devices/system/cpu/online", "0-7\n"),
    (
        "sys/devices/system/cpu/vulnerabilities/meltdown",
        "Not affected\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/topology/physical_package_id",
        "0\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "0,4\n",
    ),
    (
        "sys/devices/system/cpu/cpu7/topology/physical_package_id",
        "1\n",
    ),
    (
        "sys/devices/system/cpu/cpu7/topology/thread_siblings_list",
        "3,7\n",
    ),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
    (
        "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
        "0,4\n",
    ),
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3,6-7\n"),
    ("sys/fs/cgroup/kube/pod/cpu.max", "max 100000\n"),
    ("sys/fs/cgroup/kube/cpu.max", "150000 100000\n"),
    ("sys/fs/cgroup/kube/pod/memory.max", "1048576\n"),
    ("sys/fs/cgroup/kube/pod/pids.max", "max\n"),
    ("sys/fs/cgroup/kube/pod/cpuset.cpus.effective", "0-1,4\n"),
    ("sys/class/net/eth0/mtu", "1500\n"),
    ("sys/class/net/eth0/speed", "10000\n"),
    ("sys/class/net/eth0/device/numa_node", "1\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00\n"),
    ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00\n"),
    ("sys/class/net/eth0/queues/tx-0/xps_cpus", "00\n"),
    ("sys/class/net/lo/mtu", "65536\n"),
    ("sys/class/net/lo/speed", "-1\n"),
];

fn recorded(files: &[(&str, &str)]) -> (Folder, Host) {
    let folder = Folder::create().unwrap();
    for (path, text) in files {
        folder.write(path, text).unwrap();
    }
    let host = Host::under(folder.path());
    (folder, host)
}

#[test]
fn processors_are_read_with_their_neighbours() {
    let (_folder, host) = recorded(TREE);
    let processor = host.processor();
    assert_eq!(processor.model, "Example(R) CPU @ 2.00GHz");
    assert!(processor.is_guest);
    assert_eq!(processor.cpus.len(), 8);
    let last = processor.cpus.last().unwrap();
    assert_eq!((last.number, last.package, last.node), (7, 1, 1));
    assert_eq!(last.threads, [3, 7]);
    let counts = (
        processor.threads_per_core(),
        processor.packages(),
        processor.nodes(),
    );
    assert_eq!(counts, (2, 2, 2));
    let cache = &processor.caches[0];
    assert_eq!(
        (cache.level, cache.kind.as_str(), cache.size.as_str()),
        (1, "data", "32K")
    );
    assert_eq!(cache.cpus, [0, 4]);
    assert_eq!(processor.frequency_governor.as_deref(), Some("performance"));
    assert_eq!(host.slug(8), "8xexample-r-cpu-2-00ghz-linux-6-1-0");
}

#[test]
fn kernel_memory_and_settings_are_read() {
    let (_folder, host) = recorded(TREE);
    let kernel = host.kernel();
    assert_eq!(kernel.version(), "6.1.0");
    assert_eq!(kernel.command_line[1], "mitigations=off");
    let meltdown = ("meltdown".to_owned(), "Not affected".to_owned());
    assert_eq!(kernel.vulnerabilities, [meltdown]);
    let memory = Memory {
        total_bytes: 16_384,
        available_bytes: 8192,
    };
    assert_eq!(host.memory(), memory);
    assert_eq!(host.setting("net/core/somaxconn").as_deref(), Some("4096"));
    let settings = host.settings(&["net/core/somaxconn", "net/core/none"]);
    assert_eq!(settings.len(), 1);
    assert_eq!(settings["net.core.somaxconn"], "4096");
    assert_eq!(host.ephemeral_ports(), (32_768, 60_999));
    assert_eq!(
        host.limit("Max open files").as_deref(),
        Some("1024 524288 files")
    );
}

#[test]
fn interfaces_are_read_without_addresses() {
    let (folder, host) = recorded(TREE);
    let device = folder.path().join("sys/class/net/eth0/device/driver");
    symlink("/sys/bus/pci/drivers/virtio_net", device).unwrap();
    let [eth0, lo] = &host.interfaces()[..] else {
        panic!("two interfaces");
    };
    assert_eq!((eth0.receive_queues, eth0.transmit_queues), (2, 1));
    assert_eq!(eth0.driver.as_deref(), Some("virtio_net"));
    assert_eq!(
        (eth0.mtu, eth0.speed, eth0.node),
        (Some(1500), Some(10_000), Some(1))
    );
    assert_eq!(
        (lo.mtu, lo.speed, lo.driver.as_deref()),
        (Some(65_536), None, None)
    );
}

#[test]
fn the_tightest_limit_of_a_control_group_counts() {
    let (_folder, host) = recorded(TREE);
    let expected = Cgroup {
        cpu_quota: Some(1.5),
        memory_bytes_max: Some(1_048_576),
        tasks_max: None,
        cpus: Some(vec![0, 1, 4]),
    };
    assert_eq!(host.cgroup(), expected);
    let (_folder, host) = recorded(&[
        ("proc/self/cgroup", "4:memory:/a\n2:cpu,cpuacct:/a\n0::/\n"),
        ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
        (
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
    ]);
    let expected = Cgroup {
        memory_bytes_max: Some(4096),
        ..Cgroup::default()
    };
    assert_eq!(host.cgroup(), expected);
}

#[test]
fn time_and_memory_of_cores_and_processes_are_read() {
    let (_folder, host) = recorded(TREE);
    let times = CpuTimes {
        cpu: 0,
        busy_us: 190_000,
        idle_us: 90_000,
        softirq_us: 70_000,
        steal_us: 80_000,
    };
    assert_eq!(host.cpu_times()[0], times);
    assert_eq!(host.cpu_times()[1].busy_us, 100_000);
    assert_eq!((host.threads(7), host.run_ns(7)), (vec![7, 9], 1500));
    let memory = ProcessMemory {
        resident_bytes: 12_288,
        proportional_bytes: 3072,
    };
    assert_eq!(host.process_memory(7), memory);
}

#[test]
fn an_empty_tree_is_a_machine_that_tells_nothing() {
    let (_folder, host) = recorded(&[]);
    assert_eq!(host.processor().model, "unknown processor");
    assert!(host.processor().cpus.is_empty() && host.interfaces().is_empty());
    assert_eq!(host.cgroup(), Cgroup::default());
    assert_eq!((host.memory(), host.run_ns(7)), (Memory::default(), 0));
    assert_eq!(
        (host.setting("a"), host.limit("Max open files")),
        (None, None)
    );
}

#[test]
fn lists_of_cpus_are_read() {
    let cases: &[(&str, &[usize])] = &[
        ("0-3,8\n", &[0, 1, 2, 3, 8]),
        ("5", &[5]),
        ("", &[]),
        ("3-1", &[]),
        ("a-b,2", &[2]),
    ];
    for (text, expected) in cases {
        assert_eq!(list(text), *expected, "{text}");
    }
    assert_eq!(list("0-18446744073709551615").len(), CPUS_MAX + 1);
}

#[test]
fn this_machine_can_be_read() {
    let host = Host::here();
    assert!(!host.processor().cpus.is_empty());
    assert!(!host.kernel().version().is_empty());
    assert!(host.memory().total_bytes > 0);
    assert!(host.process_memory(std::process::id()).resident_bytes > 0);
    assert!(!host.cpu_times().is_empty());
}

#[test]
fn interrupts_and_packet_work_are_read_for_each_cpu() {
    let (_folder, host) = recorded(&[
        (
            "proc/interrupts",
            "  CPU0  CPU1\n 41:  52  3  PCI-MSIX  1-edge  eth0-rx-0\nNMI: 0 0 x\n",
        ),
        ("proc/irq/41/smp_affinity_list", "0-1\n"),
        ("proc/irq/41/effective_affinity_list", "1\n"),
        ("proc/softirqs", "   CPU0 CPU1\n  NET_RX:  10  20\n"),
        (
            "proc/net/softnet_stat",
            "0000000a 00000001 00000002\n000000ff 0 0 0 0 0 0 0 0 0 0 0 00000001 0 0\n",
        ),
        (
            "proc/net/netstat",
            "TcpExt: A B\nTcpExt: 4 0\nIpExt: C\nIpExt: -1\n",
        ),
        (
            "proc/net/sockstat",
            "sockets: used 7\nTCP: inuse 3 orphan 1 tw 40 alloc 9 mem 2\n",
        ),
        (
            "proc/pressure/cpu",
            "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n",
        ),
    ]);
    let [interrupt] = &host.interrupts()[..] else {
        panic!("one interrupt");
    };
    assert_eq!(
        (interrupt.number, interrupt.name.as_str()),
        (41, "eth0-rx-0")
    );
    assert_eq!(
        (&interrupt.counts[..], &interrupt.allowed[..]),
        (&[52, 3][..], &[0, 1][..])
    );
    assert_eq!(interrupt.effective, [1]);
    let work = host.packet_work();
    assert_eq!(
        (work[0].packets, work[0].dropped, work[0].squeezed),
        (10, 1, 2)
    );
    assert_eq!(
        (work[1].cpu, work[1].packets, work[1].receive_runs),
        (1, 255, 20)
    );
    let counters = host.network_counters();
    assert_eq!(
        counters.into_iter().collect::<Vec<_>>(),
        [("TcpExt.A".to_owned(), 4)]
    );
    let sockets = host.socket_counts();
    assert_eq!(
        (sockets.in_use, sockets.time_wait, sockets.memory_pages),
        (3, 40, 2)
    );
    assert!((host.pressure().cpu_some - 12.5).abs() < 1e-9);
}

#[test]
fn processes_and_their_networks_are_read() {
    let stat = |name: &str, state: char, parent: u32| {
        let zeros = "0 ".repeat(17);
        format!("1 ({name}) {state} {parent} {zeros}77 0\n")
    };
    let (_folder, host) = recorded(&[
        ("proc/5/stat", &stat("a", 'S', 1)),
        ("proc/6/stat", &stat("b) Z 9 (", 'R', 5)),
        ("proc/7/stat", &stat("c", 'Z', 6)),
        ("proc/8/stat", &stat("d", 'S', 1)),
        (
            "proc/5/net/netstat",
            "TcpExt: A B\nTcpExt: 4 0\nIpExt: C\nIpExt: -1\n",
        ),
        (
            "proc/5/net/sockstat",
            "sockets: used 7\nTCP: inuse 3 orphan 1 tw 40 alloc 9 mem 2\n",
        ),
        (
            "proc/self/status",
            "VmRSS:\t  12 kB\nCpus_allowed_list:\t0-1,4\n",
        ),
        ("proc/thread-self/schedstat", "1000 20 3\n"),
    ]);
    let process = host.process(6).unwrap();
    assert_eq!(
        (process.parent, process.state, process.started_ticks),
        (5, 'R', 77)
    );
    assert!(process.is_alive() && !host.process(7).unwrap().is_alive());
    assert_eq!(host.process(9), None);
    assert_eq!(host.family(5), [5, 6, 7]);
    let counters = host.network_counters_of(5).unwrap();
    assert_eq!(
        counters.into_iter().collect::<Vec<_>>(),
        [("TcpExt.A".to_owned(), 4), ("TcpExt.B".to_owned(), 0)]
    );
    assert_eq!(host.socket_counts_of(5).unwrap().time_wait, 40);
    assert_eq!(host.network_counters_of(9), None);
    assert_eq!(host.socket_counts_of(9), None);
    assert_eq!(host.own_cpus(), [0, 1, 4]);
    assert_eq!(host.own_resident_bytes(), 12 * 1024);
    assert_eq!(host.own_thread_ns(), Some((1000, 20)));
}

#[test]
fn the_queues_of_listening_sockets_are_read() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _client = std::net::TcpStream::connect(address).unwrap();
    let found = turnpike_testkit::wait_for(|| {
        let found = Host::here().listeners();
        found
            .into_iter()
            .find(|one| one.port == address.port() && one.waiting == 1)
    });
    let found = found.unwrap();
    assert!(found.is_loopback && found.backlog > 0);
    assert!(Host::under("/nowhere").listeners().is_empty());
}

#[test]
fn answers_about_sockets_that_are_cut_short_are_left() {
    let mut found = Vec::new();
    let mut bytes = vec![0; 90];
    bytes[..4].copy_from_slice(&200_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&20_u16.to_ne_bytes());
    assert!(!sockets::messages(&bytes, &mut found));
    bytes[..4].copy_from_slice(&0_u32.to_ne_bytes());
    assert!(!sockets::messages(&bytes, &mut found));
    assert!(sockets::messages(&[], &mut found) && found.is_empty());
}

#[test]
fn who_holds_an_address_is_read_from_the_tables_and_the_descriptors() {
    let head = "  sl  local_address rem_address   st ...\n";
    let row = |local: &str, state: &str, inode: u32| {
        format!("   0: {local} 00000000:0000 {state} 0:0 0:0 0 0 0 {inode} 1 0\n")
    };
    let tcp = [
        head.to_owned(),
        row("0100007F:1F90", "0A", 11),
        row("0200007F:1F90", "0A", 12),
        row("0100007F:1F91", "01", 13),
    ];
    let tcp6 = [
        head.to_owned(),
        row("00000000000000000000000000000000:0050", "0A", 14),
    ];
    let stat = |parent: u32, started: u32| {
        let zeros = "0 ".repeat(17);
        format!("1 (x) S {parent} {zeros}{started}")
    };
    let (folder, host) = recorded(&[
        ("proc/net/tcp", &tcp.concat()),
        ("proc/net/tcp6", &tcp6.concat()),
        (
            "proc/net/unix",
            "Num ...\n0: 2 0 10000 1 1 15 /run/a.sock\n",
        ),
        ("proc/20/comm", "turnpike-serve\n"),
        ("proc/20/stat", &stat(21, 900)),
        ("proc/20/fd/0", ""),
        ("proc/21/comm", "turnpike-master\n"),
        ("proc/21/stat", &stat(1, 800)),
        ("proc/21/fd/0", ""),
        ("proc/22/comm", "php\n"),
        ("proc/22/stat", &stat(1, 700)),
        ("proc/22/fd/0", ""),
    ]);
    for (process, socket) in [(20, 11), (21, 11), (22, 12), (22, 14), (22, 15)] {
        let link = folder.path().join(format!("proc/{process}/fd/{socket}"));
        symlink(format!("socket:[{socket}]"), link).unwrap();
    }
    let tcp = |text: &str| Endpoint::Tcp(text.parse().unwrap());
    let cases = [
        (tcp("127.0.0.1:8080"), Some((21, "turnpike-master"))),
        (tcp("127.0.0.2:8080"), Some((22, "php"))),
        (tcp("127.0.0.3:8080"), None),
        (tcp("127.0.0.1:8081"), None),
        (tcp("192.0.2.1:80"), Some((22, "php"))),
        (Endpoint::Unix("/run/a.sock"), Some((22, "php"))),
        (Endpoint::Unix("/run/b.sock"), None),
    ];
    for (endpoint, expected) in cases {
        let found = host.holder(endpoint);
        let found = found
            .as_ref()
            .map(|holder| (holder.process, holder.name.as_str()));
        assert_eq!(found, expected, "{endpoint:?}");
    }
}
