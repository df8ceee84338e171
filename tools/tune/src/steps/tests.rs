#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;

use turnpike_testkit::Folder;

use super::*;
use crate::facts::Rights;
use crate::journal::Reload;
use crate::plan::{SCHEMA, Step};

const TREE: &[(&str, &str)] = &[
    ("proc/sys/kernel/random/boot_id", "first\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00\n"),
    ("etc/sysctl.d/README", "theirs"),
];

struct Machine {
    folder: Folder,
    system: System,
    facts: Facts,
}

impl Machine {
    fn new() -> Machine {
        let folder = Folder::create().unwrap();
        for (path, text) in TREE {
            folder.write(path, text).unwrap();
        }
        let system = System::under(folder.path());
        let names = ["net.core.somaxconn", "net.ipv4.ip_local_port_range"];
        let settings = names.map(|name| (name.to_owned(), String::new()));
        let facts = Facts {
            settings: settings.into_iter().collect(),
            rights: Rights {
                is_root: true,
                ..Rights::default()
            },
            ..Facts::default()
        };
        Machine {
            folder,
            system,
            facts,
        }
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.folder.path().join("state")).unwrap()
    }

    fn apply(&self, keep: bool) -> Vec<Line> {
        let mut journal = self.journal();
        apply(&self.system, &self.facts, &plan(), keep, &mut journal).unwrap()
    }

    fn revert(&self) -> Vec<Line> {
        revert(&self.system, &mut self.journal()).unwrap()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }

    /// Every file of the machine with its bytes, and every folder.
    fn all(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut waiting = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                let name = path.display().to_string();
                match path.is_dir() {
                    true if path.ends_with("state") => {}
                    true => {
                        all.insert(name, Vec::new());
                        waiting.push(path);
                    }
                    false => drop(all.insert(name, std::fs::read(&path).unwrap())),
                }
            }
        }
        all
    }
}

/// A server is told to read the configuration that was put back; one that does not run is not.
#[test]
fn a_server_reloads_what_is_put_back() {
    for is_there in [true, false] {
        let machine = Machine::new();
        // Whoever runs the tests may ignore HUP, as nohup does.
        let mut child = std::process::Command::new("env")
            .args(["--default-signal=HUP", "sleep", "1000"])
            .spawn()
            .unwrap();
        let pid = child.id();
        let program = loop {
            let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
            if program.ends_with("sleep") {
                break program;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        machine.folder.write("run/pid", format!("{pid}\n")).unwrap();
        machine.folder.write("etc/n.conf", "old").unwrap();
        let other = if is_there { "" } else { "-other" };
        let reload = Reload {
            pid_file: "/run/pid".to_owned(),
            program: format!("{}{other}", program.display()),
        };
        let mut journal = machine.journal();
        let begin = Begin {
            reload: Some(reload),
            ..begin(&machine.system, "climb")
        };
        journal.begin(begin).unwrap();
        // A step is tried, undone, and tried again: the first bytes are what was there.
        for text in ["new", "newer", "new"] {
            let entry = Entry::new(Kind::Disk, "/etc/n.conf", Some(b"old"), text);
            change(&machine.system, &mut journal, &entry).unwrap();
        }
        assert_eq!(journal.parts[0].changes.len(), 2);
        journal.end().unwrap();
        drop(journal);
        let told = if is_there {
            Outcome::Reloaded
        } else {
            Outcome::NotRunning
        };
        let expected = [("/etc/n.conf", Outcome::Restored), ("/run/pid", told)];
        let expected = expected.map(|(path, outcome)| (path.to_owned(), outcome));
        assert_eq!(machine.revert(), expected);
        assert_eq!(machine.read("etc/n.conf"), "old");
        if !is_there {
            child.kill().unwrap();
        }
        let signal = child.wait().unwrap().signal();
        assert_eq!(signal, Some(if is_there { 1 } else { 9 }));
    }
}

fn plan() -> Plan {
    let changes = [
        Change::setting("net.core.somaxconn", 65_535),
        Change::setting("net.ipv4.ip_local_port_range", "1024 65535"),
        Change::ReceiveMask {
            interface: "eth0".to_owned(),
            queue: 0,
            mask: "3".to_owned(),
        },
        Change::ServiceFiles {
            service: "nginx".to_owned(),
            files: 1_000_000,
        },
    ];
    let step = |change: Change| Step {
        findings: vec!["test".to_owned()],
        change,
        caution: None,
    };
    Plan {
        schema: SCHEMA.to_owned(),
        machine: String::new(),
        steps: changes.map(step).to_vec(),
        workers: Vec::new(),
    }
}

#[test]
fn all_is_changed_and_put_back_to_the_byte() {
    let machine = Machine::new();
    let before = machine.all();
    let lines = machine.apply(true);
    assert_eq!(lines.len(), 6);
    assert!(
        lines
            .iter()
            .all(|(_, outcome)| matches!(outcome, Outcome::Done { .. })),
        "{lines:?}"
    );
    assert_eq!(machine.read("proc/sys/net/core/somaxconn"), "65535");
    let kept = machine.read("etc/sysctl.d/99-turnpike-tune.conf");
    assert!(
        kept.ends_with("net.core.somaxconn = 65535\nnet.ipv4.ip_local_port_range = 1024 65535\n")
    );
    let rule = machine.read("etc/udev/rules.d/99-turnpike-tune.rules");
    assert!(rule.contains("ATTR{queues/rx-0/rps_cpus}=\"3\""), "{rule}");
    let service = machine.read("etc/systemd/system/nginx.service.d/50-turnpike-tune.conf");
    assert!(service.ends_with("[Service]\nLimitNOFILE=1000000\n"));
    // The second time there is nothing to do, and nothing more to undo.
    assert!(
        machine
            .apply(true)
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Already)
    );
    let lines = machine.revert();
    assert!(
        lines
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Restored),
        "{lines:?}"
    );
    assert_eq!(machine.all(), before);
    assert!(machine.revert().is_empty());
}

#[test]
fn a_preview_changes_nothing_and_says_what_is_left_out() {
    let mut machine = Machine::new();
    machine.facts.settings.remove("net.core.somaxconn");
    let before = machine.all();
    let lines = preview(&machine.system, &machine.facts, &plan(), true);
    assert!(matches!(&lines[0].1, Outcome::Impossible(why) if why.contains("has no net.core")));
    let to = Outcome::Would {
        from: "32768 60999".to_owned(),
        to: "1024 65535".to_owned(),
    };
    assert_eq!(lines[1].1, to);
    assert_eq!(machine.all(), before);
}

#[test]
fn what_somebody_else_has_changed_since_is_left() {
    let machine = Machine::new();
    machine.apply(true);
    machine
        .folder
        .write("proc/sys/net/core/somaxconn", "1000\n")
        .unwrap();
    machine
        .folder
        .write("etc/sysctl.d/99-turnpike-tune.conf", "mine now")
        .unwrap();
    let lines = machine.revert();
    let changed: Vec<&Line> = lines
        .iter()
        .filter(|(_, outcome)| outcome.is_left())
        .collect();
    assert_eq!(changed.len(), 2, "{lines:?}");
    assert_eq!(changed[1].1, Outcome::Changed("1000".to_owned()));
    assert_eq!(
        machine.read("etc/sysctl.d/99-turnpike-tune.conf"),
        "mine now"
    );
    assert_eq!(
        machine.read("proc/sys/net/ipv4/ip_local_port_range"),
        "32768\t60999\n"
    );
}

#[test]
fn a_crash_at_any_moment_leaves_nothing_that_cannot_be_put_back() {
    let whole = Machine::new();
    whole.apply(true);
    let lines = whole.read("state/journal");
    let count = lines.lines().count();
    for kept in 0..=count {
        let machine = Machine::new();
        let before = machine.all();
        machine.apply(true);
        // The journal as it was when the process died: with `kept` lines and half of another one.
        let text: Vec<&str> = lines.lines().collect();
        let part = text.get(kept).map_or("", |line| &line[..line.len() / 2]);
        let cut = format!("{}\n{part}", text[..kept].join("\n"));
        put_back_unknown(&machine, &text[kept.min(count)..]);
        machine.folder.write("state/journal", dead(&cut)).unwrap();
        let mut journal = machine.journal();
        recover(&machine.system, &mut journal).unwrap();
        drop(journal);
        let lines = machine.revert();
        assert!(
            !lines.iter().any(|(_, outcome)| outcome.is_left()),
            "{kept}: {lines:?}"
        );
        assert_eq!(machine.all(), before, "after {kept} lines");
    }
}

/// Undoes the changes whose lines the crash has prevented: they were not made either.
fn put_back_unknown(machine: &Machine, lines: &[&str]) {
    for line in lines.iter().rev() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        if value["line"] != "change" {
            continue;
        }
        let path = machine.system.path(value["path"].as_str().unwrap());
        match (value["kind"].as_str().unwrap(), value["before"].as_str()) {
            ("folder", _) => std::fs::remove_dir(path).unwrap(),
            (_, Some(before)) => std::fs::write(path, before).unwrap(),
            (_, None) => std::fs::remove_file(path).unwrap(),
        }
    }
}

/// A journal whose writer is dead: no process was started at such a time.
fn dead(journal: &str) -> String {
    let started = System::under("/").started(std::process::id());
    journal.replace(&format!("\"started\":\"{started}\""), "\"started\":\"1\"")
}

#[test]
fn a_living_writer_is_not_broken_off() {
    let machine = Machine::new();
    let mut journal = machine.journal();
    journal.begin(begin(&machine.system, "apply")).unwrap();
    assert!(!is_broken_off(&machine.system, &journal.parts[0]));
    journal.parts[0].begin.started = "1".to_owned();
    assert!(is_broken_off(&machine.system, &journal.parts[0]));
    let second = Journal::open(&machine.folder.path().join("state"));
    assert!(second.unwrap_err().contains("another turnpike tune"));
}

#[test]
fn after_a_restart_of_the_machine_only_what_still_holds_is_put_back() {
    let machine = Machine::new();
    let before = machine.all();
    machine.apply(true);
    // The kernel has its defaults again, but for what sysctl.d has set once more.
    machine
        .folder
        .write("proc/sys/kernel/random/boot_id", "second\n")
        .unwrap();
    machine
        .folder
        .write("proc/sys/net/core/somaxconn", "65535\n")
        .unwrap();
    machine
        .folder
        .write("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
        .unwrap();
    machine
        .folder
        .write("sys/class/net/eth0/queues/rx-0/rps_cpus", "01\n")
        .unwrap();
    let lines = machine.revert();
    let outcome = |path: &str| {
        lines
            .iter()
            .find(|line| line.0.contains(path))
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(outcome("somaxconn"), Outcome::Restored);
    assert_eq!(outcome("port_range"), Outcome::Restored);
    assert_eq!(outcome("rps_cpus"), Outcome::Restarted("01".to_owned()));
    assert_eq!(machine.read("proc/sys/net/core/somaxconn"), "128\n");
    machine
        .folder
        .write("sys/class/net/eth0/queues/rx-0/rps_cpus", "00\n")
        .unwrap();
    machine
        .folder
        .write("proc/sys/kernel/random/boot_id", "first\n")
        .unwrap();
    assert_eq!(machine.all(), before);
}

#[test]
fn files_that_are_not_ours_are_not_replaced() {
    let machine = Machine::new();
    machine
        .folder
        .write("etc/sysctl.d/99-turnpike-tune.conf", "theirs")
        .unwrap();
    let lines = machine.apply(true);
    let line = lines
        .iter()
        .find(|line| line.0.ends_with("99-turnpike-tune.conf"))
        .unwrap();
    assert!(
        matches!(&line.1, Outcome::Impossible(why) if why.contains("not written by turnpike tune"))
    );
    assert_eq!(machine.read("etc/sysctl.d/99-turnpike-tune.conf"), "theirs");
}

#[test]
fn a_plan_of_another_machine_says_what_is_not_possible_here() {
    let machine = Machine::new();
    let mut plan = plan();
    plan.steps[2].change = Change::ReceiveMask {
        interface: "eth9".to_owned(),
        queue: 3,
        mask: "ff".to_owned(),
    };
    plan.steps[3].change = Change::ServiceFiles {
        service: "../../x".to_owned(),
        files: 1,
    };
    let lines = preview(&machine.system, &machine.facts, &plan, false);
    assert!(matches!(&lines[2].1, Outcome::Impossible(why) if why.contains("/net/eth9/")));
    assert!(matches!(&lines[3].1, Outcome::Impossible(why) if why.contains("characters")));
    assert!(matches!(lines[0].1, Outcome::Would { .. }));
}

#[test]
fn values_are_the_same_however_the_kernel_writes_them() {
    let cases = [
        ("32768\t60999\n", "32768 60999", true),
        ("00000000,00000003\n", "3", true),
        ("0\n", "0", true),
        ("10\n", "1", false),
        ("128\n", "65535", false),
    ];
    for (now, written, expected) in cases {
        assert_eq!(same(Kind::Kernel, now, written), expected, "{now}");
    }
    assert!(!same(Kind::Disk, "a\n", "a"));
}
