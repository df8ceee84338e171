#![allow(clippy::unwrap_used)]

use turnpike_testkit::Folder;

use super::*;

const TREE: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.1.0-39-amd64\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    (
        "proc/self/limits",
        "Max open files            1024   524288  files\n",
    ),
    ("proc/self/mounts", "proc /proc/sys proc ro,nosuid 0 0\n"),
    ("proc/cmdline", "root=UUID=secret mitigations=off\n"),
    (
        "proc/net/netstat",
        "TcpExt: ListenOverflows ListenDrops\nTcpExt: 7 0\n",
    ),
    ("proc/412/comm", "nginx\n"),
    (
        "proc/412/limits",
        "Max open files            4096   4096  files\n",
    ),
    ("run/.containerenv", ""),
    (
        "etc/sysctl.d/10-a.conf",
        "# no = thing\nnet.core.somaxconn = 1\n",
    ),
    ("usr/lib/sysctl.d/10-a.conf", "net.core.somaxconn = 9\n"),
    (
        "usr/lib/sysctl.d/50-b.conf",
        "-net/core/somaxconn=2\nkernel.x = a  b\n",
    ),
    ("etc/sysctl.conf", "net.core.somaxconn=3\n"),
];

const CONFIGURATION: &str = "worker_processes auto;
events { worker_connections 100; accept_mutex on; }
error_log error.log;
http {
    access_log access.log;
    access_log /dev/null;
    access_log off;
    include server.conf;
}
";

const SERVER: &str = "server {
    listen 80 backlog=4096 reuseport;
    listen unix:/run/a;
    root /srv;
    location /a { proxy_pass http://b; access_log b.log combined buffer=8k; }
}
";

fn recorded() -> Folder {
    let folder = Folder::create().unwrap();
    for (path, text) in TREE {
        folder.write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_machine_is_read_and_kept_as_json() {
    let folder = recorded();
    let facts = read(&Host::under(folder.path()), folder.path(), 0.0);
    assert_eq!(facts.number("net.core.somaxconn"), Some(128));
    assert_eq!(
        facts.setting("net.ipv4.ip_local_port_range"),
        Some("32768 60999")
    );
    assert_eq!(facts.open_files_max, Some(1024));
    assert_eq!(facts.counter("TcpExt.ListenOverflows"), 7);
    assert!(facts.rights.is_container && facts.rights.settings_read_only);
    assert_eq!(facts.kernel.command_line, ["mitigations=off"]);
    let server = facts.running("nginx").next().unwrap();
    assert_eq!((server.process, server.open_files_max), (412, Some(4096)));
    assert!(facts.kernel_is_from(6, 1) && !facts.kernel_is_from(6, 2));
    let text = serde_json::to_string(&facts).unwrap();
    assert!(!text.contains("secret"));
    assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
}

#[test]
fn settings_are_read_in_the_order_in_which_they_apply() {
    let folder = recorded();
    let lines = settings::lines(folder.path());
    let lines = lines
        .iter()
        .map(|line| format!("{}:{} {}={}", line.file, line.line, line.name, line.value));
    let lines: Vec<String> = lines.collect();
    let expected = [
        "/etc/sysctl.d/10-a.conf:2 net.core.somaxconn=1",
        "/usr/lib/sysctl.d/50-b.conf:1 net.core.somaxconn=2",
        "/usr/lib/sysctl.d/50-b.conf:2 kernel.x=a b",
        "/etc/sysctl.conf:1 net.core.somaxconn=3",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_configuration_is_read_with_its_includes_and_logs() {
    let folder = recorded();
    folder.write("nginx.conf", CONFIGURATION).unwrap();
    folder.write("server.conf", SERVER).unwrap();
    let error =
        "accept4() failed (24: Too many open files)\n100 worker_connections are not enough\n";
    folder.write("error.log", error).unwrap();
    let mut facts = Facts::default();
    let file = folder.path().join("nginx.conf");
    facts.add_configuration(&Host::here(), &file).unwrap();
    assert_eq!(
        (
            facts.symptoms.too_many_open_files,
            facts.symptoms.worker_connections
        ),
        (1, 1)
    );
    let found = facts.configuration.unwrap();
    assert_eq!(
        (found.workers.text.as_str(), found.connections.number()),
        ("auto", Some(100))
    );
    assert!(found.accept_mutex && found.accept_mutex_at.ends_with("nginx.conf:2"));
    let [listen] = &found.listens[..] else {
        panic!("{:?}", found.listens);
    };
    assert_eq!((listen.backlog, listen.reuseport), (4096, true));
    assert!(listen.place.ends_with("server.conf:2"), "{}", listen.place);
    let logs: Vec<bool> = found.access_logs.iter().map(|log| log.buffered).collect();
    assert_eq!(logs, [false, true]);
    assert_eq!((found.proxies.len(), found.roots.len()), (1, 1));
    assert!(!facts.disks.is_empty());
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error_with_its_place() {
    let folder = Folder::create().unwrap();
    folder.write("nginx.conf", "events {").unwrap();
    let error =
        Facts::default().add_configuration(&Host::here(), &folder.path().join("nginx.conf"));
    assert!(error.unwrap_err().contains("nginx.conf:1"));
}

#[test]
fn this_machine_can_be_read() {
    let facts = read(&Host::here(), Path::new("/"), 0.0);
    assert!(!facts.processor.cpus.is_empty());
    assert!(facts.settings.contains_key("net.core.somaxconn"));
    assert!(
        crate::findings::judge(&facts)
            .iter()
            .all(|finding| !finding.seen.evidence.is_empty())
    );
}
