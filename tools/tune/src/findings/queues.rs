//! Queues of connections: from the first SYN to accept(2), and what is left after close(2).

use crate::change::Change;
use crate::facts::Facts;
use crate::row::{Row, Seen, WithChanges as _};

/// A queue that holds a burst of a hundred thousand handshakes a second for half a second.
const QUEUE: u64 = 65_535;
/// The kernel's own default since Linux 5.4.
const QUEUE_DEFAULT: u64 = 4096;

const SOMAXCONN: &str = "net.core.somaxconn";
const SYN_BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "listen-queue-overflow",
        title: "A listen queue has overflowed",
        why: "A connection whose queue is full is silently dropped. The client sends its SYN or \
              its last ACK again after one second, then two, then four, so that the rate falls and \
              the 99th percentile of latency jumps to whole seconds.",
        source: "listen(2); Documentation/networking/ip-sysctl.rst (somaxconn)",
        fix: "Raise net.core.somaxconn and the backlog of listen together, and find out why the \
              server does not accept in time: too few workers, or one that blocks.",
        effect: "No dropped handshakes in bursts that the server can serve on average.",
        find: overflowed,
    },
    Row {
        id: "backlog-capped",
        title: "The backlog of listen is cut by somaxconn",
        why: "The kernel silently cuts the backlog of listen(2) to net.core.somaxconn. A \
            configuration with a larger value looks right, but has no effect.",
        source: "listen(2); basho_docs pull request 706",
        fix: "Set net.core.somaxconn to at least the largest backlog, then restart the server: a \
              socket keeps the limit that was in force when it began to listen.",
        effect: "The queue is as long as the configuration says.",
        find: capped,
    },
    Row {
        id: "somaxconn-low",
        title: "Listen queues are short",
        why: "net.core.somaxconn limits the queue of every listening socket. A queue of 128 is \
              full after a millisecond at 100,000 connections a second.",
        source: "study S3 (somaxconn 1048576) and S2 (131072): turnpike lab show s3-tuning-ladder",
        fix: "net.core.somaxconn = 65535, and backlog=65535 on the listens.",
        effect: "Bursts wait instead of being dropped; nothing changes below the limit.",
        find: short,
    },
    Row {
        id: "syn-cookies-sent",
        title: "SYN cookies were sent: the kernel mistook load for a SYN flood",
        why: "Once the queue of half-open connections is full, the kernel answers with cookies and \
              logs \"Possible SYN flooding\". Cookies cost a hash for each handshake and TCP \
              options are lost where timestamps are off.",
        source: "Documentation/networking/ip-sysctl.rst (tcp_syncookies); study S3",
        fix: "Raise net.ipv4.tcp_max_syn_backlog, net.core.somaxconn and the backlog of listen. \
              Leave tcp_syncookies on: it is the defence if a flood is real.",
        effect: "Handshakes go the usual way under load.",
        find: cookies,
    },
    Row {
        id: "syn-cookies-always",
        title: "SYN cookies are sent to every client",
        why: "tcp_syncookies=2 sends a cookie in every handshake. It is meant for tests.",
        source: "Documentation/networking/ip-sysctl.rst (tcp_syncookies)",
        fix: "net.ipv4.tcp_syncookies = 1",
        effect: "Less work for each handshake, and all options of TCP.",
        find: always_cookies,
    },
    Row {
        id: "abort-on-overflow",
        title: "A full listen queue resets clients",
        why: "With tcp_abort_on_overflow a client that finds the queue full gets a reset, where a \
              second try would often have been served.",
        source: "Documentation/networking/ip-sysctl.rst (tcp_abort_on_overflow)",
        fix: "net.ipv4.tcp_abort_on_overflow = 0",
        effect: "Short bursts cost time instead of connections.",
        find: abort,
    },
    Row {
        id: "ports-narrow",
        title: "Few ports for outgoing connections",
        why: "Each connection to an upstream server, and each of a load generator, needs a local \
              port of its own for the same destination; a closed one keeps it for 60 seconds in \
              TIME_WAIT. So 28,232 ports allow 470 new connections a second to one address.",
        source: "ip(7) (ip_local_port_range); study S4 and S3 (1024-65535)",
        fix: "net.ipv4.ip_local_port_range = 1024 65535, and keep connections to upstream servers \
              open (keepalive in the upstream block). Ports that services listen on are kept out \
              with net.ipv4.ip_local_reserved_ports.",
        effect: "2.3 times as many outgoing connections a second. Nothing changes for a server \
                 that only accepts.",
        find: ports,
    },
    Row {
        id: "time-wait-full",
        title: "The table of TIME_WAIT sockets has overflowed",
        why: "Beyond tcp_max_tw_buckets, sockets are destroyed at once and the kernel logs it: \
              late packets then find no socket and are answered with a reset. It also \
              shows that this side closes most connections.",
        source: "Documentation/networking/ip-sysctl.rst (tcp_max_tw_buckets)",
        fix: "Raise net.ipv4.tcp_max_tw_buckets (each costs about 256 bytes), or let clients close \
              by keep-alive. A benchmark may lower it on purpose, as study S2 does.",
        effect: "No early destruction, no resets of late packets.",
        find: time_wait_full,
    },
    Row {
        id: "time-wait-ports",
        title: "Many ports are held by TIME_WAIT sockets",
        why: "Where this machine opens the connections (proxy, load generator), each TIME_WAIT \
              socket holds a port towards its destination, and connect(2) searches for a free one.",
        source: "vincent.bernat.ch, Coping with the TCP TIME-WAIT state; study S2",
        fix: "Keep connections to upstream servers open; widen ip_local_port_range; \
              tcp_tw_reuse=1 lets connect(2) take a port whose socket has waited for a second.",
        effect: "connect(2) does not fail with \"Cannot assign requested address\".",
        find: time_wait_ports,
    },
];

fn overflowed(facts: &Facts) -> Option<Seen> {
    let count = facts.counter("TcpExt.ListenOverflows");
    let full = facts
        .listeners
        .iter()
        .find(|one| one.backlog > 0 && one.waiting >= one.backlog);
    if let Some(listener) = full {
        return Seen::problem(format!(
            "port {}: {} of {} places of the queue are taken now; {count} overflows since the \
                start",
            listener.port, listener.waiting, listener.backlog
        ))
        .with(longer_queues(facts));
    }
    let now = facts.sample.counters.get("TcpExt.ListenOverflows");
    let now = now.map(|now| format!(", {now} of them in {} s", facts.sample.seconds));
    (count > 0)
        .then(|| {
            format!(
                "{count} overflows since the start{}",
                now.unwrap_or_default()
            )
        })
        .and_then(Seen::problem)
        .with(longer_queues(facts))
}

/// The settings that are below what a busy server wants.
fn longer_queues(facts: &Facts) -> Vec<Change> {
    let backlogs = facts.configuration.iter().flat_map(|all| &all.listens);
    let wanted = backlogs
        .map(|listen| u64::from(listen.backlog))
        .max()
        .unwrap_or(0)
        .max(QUEUE);
    let low = |name: &&str| facts.number(name).is_some_and(|value| value < wanted);
    let names = [SOMAXCONN, SYN_BACKLOG];
    names
        .iter()
        .filter(|name| low(name))
        .map(|name| Change::setting(name, wanted))
        .collect()
}

fn capped(facts: &Facts) -> Option<Seen> {
    let limit = facts.number(SOMAXCONN)?;
    let listens = facts.configuration.iter().flat_map(|all| &all.listens);
    let largest = listens.filter(|listen| u64::from(listen.backlog) > limit);
    let largest = largest.max_by_key(|listen| listen.backlog)?;
    Seen::warning(format!(
        "listen {} asks for a backlog of {} in {}, net.core.somaxconn is {limit}",
        largest.address, largest.backlog, largest.place
    ))
    .with(vec![Change::setting(
        SOMAXCONN,
        u64::from(largest.backlog).max(QUEUE),
    )])
}

fn short(facts: &Facts) -> Option<Seen> {
    let limit = facts.number(SOMAXCONN).filter(|limit| *limit < QUEUE)?;
    let evidence = format!("net.core.somaxconn is {limit}");
    if limit < QUEUE_DEFAULT {
        Seen::warning(format!(
            "{evidence}; Linux has {QUEUE_DEFAULT} by default since 5.4"
        ))
    } else {
        Seen::note(format!("{evidence}, the kernel's default"))
    }
    .with(longer_queues(facts))
}

fn cookies(facts: &Facts) -> Option<Seen> {
    let sent = facts.counter("TcpExt.SyncookiesSent");
    let floods = facts.counter("TcpExt.TCPReqQFullDoCookies");
    let always = facts.number("net.ipv4.tcp_syncookies") == Some(2);
    if sent + floods == 0 || always {
        return None;
    }
    let limit = facts.number(SYN_BACKLOG).unwrap_or(0);
    Seen::problem(format!(
        "{sent} cookies sent since the start; the queue was full {floods} times; \
         tcp_max_syn_backlog is {limit}"
    ))
    .with(longer_queues(facts))
}

fn always_cookies(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_syncookies";
    let value = facts.number(name).filter(|value| *value == 2)?;
    Seen::warning(format!("{name} is {value}")).with(vec![Change::setting(name, 1)])
}

fn abort(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_abort_on_overflow";
    facts.number(name).filter(|value| *value == 1)?;
    Seen::warning(format!("{name} is 1")).with(vec![Change::setting(name, 0)])
}

fn ports(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.ip_local_port_range";
    let count = port_count(facts)?;
    if count >= 60_000 {
        return None;
    }
    let range = facts.setting(name)?;
    let evidence = format!(
        "{name} is {range}: {count} ports, {} a second to one address",
        count / 60
    );
    let proxies = facts
        .configuration
        .iter()
        .any(|all| !all.proxies.is_empty());
    match facts.symptoms.no_ports {
        0 if proxies => Seen::warning(format!("{evidence}; the configuration passes requests on")),
        0 => Seen::note(evidence),
        times => Seen::problem(format!(
            "{evidence}; the error log says {times} times that none was free"
        )),
    }
    .with(vec![Change::setting(name, "1024 65535")])
}

fn port_count(facts: &Facts) -> Option<u64> {
    let range = facts.setting("net.ipv4.ip_local_port_range")?;
    let (first, last) = range.split_once(' ')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((last + 1).saturating_sub(first))
}

fn time_wait_full(facts: &Facts) -> Option<Seen> {
    let name = "net.ipv4.tcp_max_tw_buckets";
    let count = facts.counter("TcpExt.TCPTimeWaitOverflow");
    let limit = facts.number(name).filter(|_| count > 0)?;
    let wanted = (limit * 2).max(262_144);
    Seen::warning(format!(
        "{count} destroyed early since the start; {name} is {limit}"
    ))
    .with(vec![Change::setting(name, wanted)])
}

fn time_wait_ports(facts: &Facts) -> Option<Seen> {
    let ports = port_count(facts)?;
    let waiting = facts.sockets.time_wait;
    if waiting * 2 < ports {
        return None;
    }
    let name = "net.ipv4.tcp_tw_reuse";
    let reuse = facts.number(name).unwrap_or(0);
    let changes = match reuse {
        1 => Vec::new(),
        _ => vec![Change::setting(name, 1)],
    };
    Seen::note(format!(
        "{waiting} sockets in TIME_WAIT, {ports} ports; {name} is {reuse}"
    ))
    .with(changes)
}
