//! Advice that is copied from machine to machine and does nothing, or harm, on this kernel; and
//! files that contradict each other.

use std::collections::BTreeMap;

use crate::change::Change;
use crate::facts::{Facts, SettingLine};
use crate::row::{Row, Seen, WithChanges as _};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "folklore-tw-recycle",
        title: "tcp_tw_recycle is set, but the kernel no longer has it",
        why: "It was removed in Linux 4.12, since it dropped the connections of clients behind one \
              address. Lines that set it do nothing but fail.",
        source: "Linux 4.12 (commit 4396e46187ca); vincent.bernat.ch, Coping with the TCP \
            TIME-WAIT",
        fix: "Delete the line.",
        effect: "One error less at each start; nothing else changes. On a kernel \
                 before 4.12, clients behind NAT are no longer dropped.",
        find: recycle,
    },
    Row {
        id: "folklore-tw-reuse",
        title: "tcp_tw_reuse does nothing for a server that only accepts",
        why: "It concerns connect(2) alone: a new outgoing connection may take the port of one in \
              TIME_WAIT. The default 2 does so on the loopback, which is enough for local upstream \
              servers and for a load generator there.",
        source: "Documentation/networking/ip-sysctl.rst (tcp_tw_reuse); Linux 4.19",
        fix: "Leave the default; 1 where this machine opens many connections to others.",
        effect: "None for accepted connections.",
        find: reuse,
    },
    Row {
        id: "folklore-fin-timeout",
        title: "tcp_fin_timeout does not shorten TIME_WAIT",
        why: "TIME_WAIT is 60 seconds, and no setting changes that. tcp_fin_timeout is about \
              orphaned sockets in FIN_WAIT_2, which wait for a client's close.",
        source: "tcp(7) (tcp_fin_timeout); TCP_TIMEWAIT_LEN in the kernel's source",
        fix: "Leave 60; lower it only if many sockets are in FIN_WAIT_2.",
        effect: "None for TIME_WAIT.",
        find: fin_timeout,
    },
    Row {
        id: "folklore-dead-settings",
        title: "Files set settings that this kernel does not have",
        why: "A line for a removed setting does nothing, and hides what the file's other lines \
            are for. tcp_fack, tcp_low_latency and others were removed in Linux 4.14 and 4.15.",
        source: "sysctl.d(5)",
        fix: "Delete the lines.",
        effect: "None.",
        find: dead,
    },
    Row {
        id: "settings-contradict",
        title: "Files set the same setting to different values",
        why: "The last file wins, so a change in another file has no effect.",
        source: "sysctl.d(5); tuned pull requests 518 and 492",
        fix: "Keep one line for each setting.",
        effect: "The files show the values in force.",
        find: contradict,
    },
    Row {
        id: "settings-overridden",
        title: "A setting differs from what the files say",
        why: "Something has changed it after the start, or the file was never applied; after the \
            next start, the value will be another.",
        source: "sysctl.d(5); tuned pull request 518 (show who overrides which sysctl)",
        fix: "sysctl --system applies the files; otherwise find out what writes it (tuned, a \
            container's runtime, an init script).",
        effect: "The machine is the same after the next start.",
        find: overridden,
    },
    Row {
        id: "timestamps-off",
        title: "TCP timestamps are off",
        why: "Old advice to save 12 bytes a packet. Without them SYN cookies lose window scaling, \
              and tcp_tw_reuse does nothing.",
        source: "Documentation/networking/ip-sysctl.rst (tcp_timestamps, tcp_tw_reuse)",
        fix: "net.ipv4.tcp_timestamps = 1",
        effect: "Ports can be used again after a second; throughput survives SYN cookies.",
        find: timestamps,
    },
];

fn last_line<'a>(facts: &'a Facts, name: &str) -> Option<&'a SettingLine> {
    facts.setting_lines.iter().rfind(|line| line.name == name)
}

fn recycle(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_tw_recycle";
    if facts.number(name).is_some_and(|value| value > 0) {
        return Seen::problem(format!("{name} is on: clients behind NAT are dropped"))
            .with(vec![Change::setting(name, 0)]);
    }
    let line = last_line(facts, name)?;
    Seen::note(format!(
        "{}:{}; Linux {} has no such setting",
        line.file,
        line.line,
        facts.kernel.version()
    ))
}

fn reuse(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_tw_reuse";
    let line = last_line(facts, name).filter(|line| line.value == "1")?;
    let proxies = facts
        .configuration
        .as_ref()
        .is_some_and(|all| !all.proxies.is_empty());
    (!proxies && facts.kernel_is_from(4, 19))
        .then(|| format!("{} = 1 in {}:{}", line.name, line.file, line.line))
        .and_then(Seen::note)
}

fn fin_timeout(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_fin_timeout";
    let value = facts.number(name).filter(|value| *value < 30)?;
    Seen::note(format!("{name} is {value}"))
}

fn dead(facts: &Facts) -> Option<Seen> {
    const GONE: &[&str] = &[
        "net.ipv4.tcp_fack",
        "net.ipv4.tcp_low_latency",
        "net.ipv4.tcp_max_ssthresh",
        "net.ipv4.tcp_cookie_size",
        "net.ipv4.tcp_dma_copybreak",
        "net.ipv4.tcp_prequeue",
    ];
    let lines = facts.setting_lines.iter().filter(|line| {
        let gone = GONE.contains(&line.name.as_str()) && facts.kernel_is_from(4, 15);
        // tcp_low_latency is still there and does nothing; the others are not.
        gone
    });
    let found: Vec<String> = lines
        .map(|line| format!("{} in {}:{}", line.name, line.file, line.line))
        .collect();
    (!found.is_empty())
        .then(|| found.join(", "))
        .and_then(Seen::note)
}

fn contradict(facts: &Facts) -> Option<Seen> {
    let mut by_name: BTreeMap<&str, Vec<&SettingLine>> = BTreeMap::new();
    for line in &facts.setting_lines {
        by_name.entry(&line.name).or_default().push(line);
    }
    let differ = by_name.values().filter(|lines| {
        let first = lines.first().map(|line| &line.value);
        lines.iter().any(|line| Some(&line.value) != first)
    });
    let texts: Vec<String> = differ
        .map(|lines| {
            let places = lines
                .iter()
                .map(|line| format!("{} in {}:{}", line.value, line.file, line.line));
            let places: Vec<String> = places.collect();
            format!("{}: {}", lines[0].name, places.join(", then "))
        })
        .collect();
    (!texts.is_empty())
        .then(|| texts.join("; "))
        .and_then(Seen::note)
}

fn overridden(facts: &Facts) -> Option<Seen> {
    let differ = facts.settings.iter().filter_map(|(name, value)| {
        let line = last_line(facts, name)?;
        (line.value != *value).then(|| {
            format!(
                "{name} is {value}, {}:{} says {}",
                line.file, line.line, line.value
            )
        })
    });
    let texts: Vec<String> = differ.collect();
    (!texts.is_empty())
        .then(|| texts.join("; "))
        .and_then(Seen::note)
}

fn timestamps(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_timestamps";
    facts.number(name).filter(|value| *value == 0)?;
    Seen::warning(format!("{name} is 0")).with(vec![Change::setting(name, 1)])
}
