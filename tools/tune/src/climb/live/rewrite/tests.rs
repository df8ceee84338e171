#![allow(clippy::unwrap_used)]

use turnpike_conf::MemoryLoader;

use super::*;

fn original(files: &[(&str, &str)]) -> Original {
    let loader: MemoryLoader = files.iter().copied().collect();
    Original::with_loader(&loader, Path::new(files[0].0)).unwrap()
}

/// A configuration, a knob and its level, and what becomes of the file.
type Case = (&'static str, Knob, usize, &'static str);

const CASES: &[Case] = &[
    (
        "worker_processes 1; events {}",
        Knob::Workers,
        2,
        "worker_cpu_affinity auto;\nworker_processes auto; events {}",
    ),
    (
        "\u{FEFF}events {}",
        Knob::Workers,
        2,
        "\u{FEFF}worker_cpu_affinity auto;\nworker_processes auto;\nevents {}",
    ),
    (
        "events { accept_mutex on; }",
        Knob::AcceptMutex,
        1,
        "events { accept_mutex off; }",
    ),
    (
        "events {}",
        Knob::AcceptMutex,
        1,
        "events {\n    accept_mutex off;}",
    ),
    (
        "http {}",
        Knob::AcceptMutex,
        1,
        "events {\n    accept_mutex off;\n}\nhttp {}",
    ),
    (
        "events {# why\n}",
        Knob::MultiAccept,
        1,
        "events {\n    multi_accept on;# why\n}",
    ),
    (
        "http { open_file_cache off; } # end",
        Knob::OpenFileCache,
        1,
        "http { open_file_cache max=1000; } # end",
    ),
    (
        "http { access_log a.log; server { access_log 'b.log' main if=$x; } }",
        Knob::AccessLog,
        1,
        "http { access_log a.log combined buffer=64k flush=1s; server { \
      access_log 'b.log' main if=$x buffer=64k flush=1s; } }",
    ),
    (
        "http { server { listen 80; listen 81 ssl backlog=16; } }",
        Knob::Backlog,
        1,
        "http { server { listen 80 backlog=4096; listen 81 ssl backlog=4096; } }",
    ),
    // One `listen` of an address has the parameters of its socket.
    (
        "http { server { listen 80; } server { listen 80 reuseport ; } }",
        Knob::Backlog,
        1,
        "http { server { listen 80; } server { listen 80 reuseport  backlog=4096; } }",
    ),
    (
        "http { server { listen 80\n; } server { listen 80; } }",
        Knob::Deferred,
        1,
        "http { server { listen 80\n deferred; } server { listen 80; } }",
    ),
];

#[test]
fn a_step_changes_its_directives_and_no_other_byte() {
    for (text, knob, level, expected) in CASES {
        let original = original(&[("/etc/n.conf", text)]);
        let texts = original.with(Levels::default().with(*knob, *level));
        let bytes = texts.get(Path::new("/etc/n.conf")).unwrap();
        assert_eq!(std::str::from_utf8(bytes).unwrap(), *expected, "{text}");
    }
}

/// Configurations that have a step's value already, or no place for it.
const SAME: &[(&str, Knob, usize)] = &[
    (
        "worker_processes auto; worker_cpu_affinity auto;",
        Knob::Workers,
        2,
    ),
    ("events { accept_mutex off; }", Knob::AcceptMutex, 1),
    ("http { access_log off; }", Knob::AccessLog, 1),
    (
        "http { access_log a.log main buffer=8k; }",
        Knob::AccessLog,
        1,
    ),
    (
        "http { access_log syslog:server=10.0.0.1 main; }",
        Knob::AccessLog,
        1,
    ),
    ("http { access_log $host.log main; }", Knob::AccessLog, 1),
    (
        "http { server { listen 80 backlog=65535; } }",
        Knob::Backlog,
        1,
    ),
    (
        "http { server { listen unix:/a; listen 443 quic; } }",
        Knob::Deferred,
        1,
    ),
    ("stream { server { listen 80; } }", Knob::Backlog, 1),
];

#[test]
fn what_is_so_already_changes_no_file() {
    for (text, knob, level) in SAME {
        let original = original(&[("/etc/n.conf", text)]);
        let texts = original.with(Levels::default().with(*knob, *level));
        assert!(texts.is_empty(), "{text}");
    }
}

#[test]
fn a_step_reaches_into_included_files() {
    let main = "worker_processes 1; events {} http { include sites; include sites; }";
    let site = "server { listen 8080; access_log /var/a.log; }";
    let original = original(&[("/etc/n.conf", main), ("/etc/sites", site)]);
    let levels = Levels::default()
        .with(Knob::Workers, 2)
        .with(Knob::AccessLog, 1)
        .with(Knob::Backlog, 1)
        .with(Knob::Deferred, 1);
    let lines = original.lines(levels);
    let expected = [
        "/etc/n.conf: worker_cpu_affinity auto;",
        "/etc/n.conf: worker_processes auto; events {} http { include sites; include sites; }",
        "/etc/sites: server { listen 8080 backlog=4096 deferred; \
         access_log /var/a.log combined buffer=64k flush=1s; }",
    ];
    assert_eq!(lines, expected);
    assert!(original.with(Levels::default()).is_empty());
}

#[test]
fn a_client_finds_the_first_address_without_tls() {
    let cases = [
        (
            "http { server { listen 443 ssl; listen 8080; } }",
            Some("127.0.0.1:8080"),
        ),
        ("http { server { listen *:81; } }", Some("127.0.0.1:81")),
        ("http { server { listen 10.0.0.1; } }", Some("10.0.0.1:80")),
        ("http { server { listen [::]:82; } }", Some("[::1]:82")),
        ("http { server { listen [::1]; } }", Some("[::1]:80")),
        (
            "http { server { listen localhost:83; } }",
            Some("localhost:83"),
        ),
        ("http { server { } }", Some("127.0.0.1:80")),
        ("http { server { listen 80 proxy_protocol; } }", None),
        ("http { server { listen 443 ssl; } }", None),
        ("stream { server { listen 80; } }", None),
    ];
    for (text, expected) in cases {
        let found = original(&[("/etc/n.conf", text)]).address();
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}
