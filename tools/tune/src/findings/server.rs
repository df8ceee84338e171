//! The configuration of a server of nginx's language: what limits its rate of connections.

use crate::facts::Facts;
use crate::facts::configuration::Configuration;
use crate::row::{Row, Seen};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "access-log-unbuffered",
        title: "The access log is written without a buffer",
        why: "Each request makes a write(2) of its own. It adds a seventh system call \
              to six, and it takes the lock of the file.",
        source: "study S3 (access log off, with three other changes: 20932 to 47875)",
        fix: "access_log FILE combined buffer=64k flush=1s; or access_log off;",
        effect: "5 to 10 % more small requests for each CPU.",
        find: unbuffered_log,
    },
    Row {
        id: "accept-mutex-on",
        title: "accept_mutex is on",
        why: "Workers take turns in accepting. With many connections, the others sleep while \
            connections wait; study S3 went from 53721 to 97682 without it. With few workers and \
            light load it saves wake-ups, so measure it.",
        source: "studies S3, S4 and S5",
        fix: "accept_mutex off; or reuseport on the listens, which switches it off for them.",
        effect: "Up to twice the rate with many workers; nothing with one.",
        find: accept_mutex,
    },
    Row {
        id: "open-file-cache-off",
        title: "Files are opened for each request",
        why: "Without open_file_cache each request for a file costs open, fstat and close.",
        source: "study S3 (224544 to 236607); ngx_http_core_module (open_file_cache)",
        fix: "open_file_cache max=1000; (a changed file is seen after open_file_cache_valid, 60 s)",
        effect: "About 5 % more small static files.",
        find: no_open_file_cache,
    },
    Row {
        id: "workers-few",
        title: "There are fewer workers than CPUs",
        why: "A worker uses one CPU. The kernel's part of the work can use another one, so that \
              on large machines half as many workers as CPUs may be best (study S3: 12 of 24); a \
              single worker rarely is.",
        source: "study S3 (4, 24, 16, 12 workers)",
        fix: "worker_processes auto; then measure half as many.",
        effect: "Depends on where interrupts go: measure with turnpike load.",
        find: few_workers,
    },
    Row {
        id: "workers-many",
        title: "There are more workers than CPUs",
        why: "Workers that share a CPU wait for each other, and those that wait hold accepted \
              connections.",
        source: "study S3 (24 workers 97682, 12 workers 138247)",
        fix: "worker_processes auto; or fewer.",
        effect: "Lower latency, and less switching.",
        find: many_workers,
    },
    Row {
        id: "workers-not-pinned",
        title: "Workers are not bound to CPUs",
        why: "The scheduler moves workers, and their caches stay behind.",
        source: "study S3 (218857 to 224544 with each worker on a CPU of its own)",
        fix: "worker_cpu_affinity auto;",
        effect: "2 to 3 % on a machine with many CPUs.",
        find: not_pinned,
    },
    Row {
        id: "listen-shared",
        title: "All workers share one listening socket",
        why: "Its lock and its queue are taken by every worker for every connection. With \
              reuseport each has its own; a worker that blocks then also delays the connections \
              that wait in its own queue, so measure it.",
        source: "studies S1b (45589 to 144807), S4, S5",
        fix: "listen ... reuseport; on one listen of each address.",
        effect: "Up to three times the rate with many workers; on two CPUs 0.7 to 1.06 of it was \
            measured.",
        find: shared_listen,
    },
    Row {
        id: "upstream-without-keepalive",
        title: "Each proxied request opens a connection",
        why: "Connections to upstream servers are closed after each request unless their group \
              has keepalive. Each costs a handshake and a port for 60 seconds.",
        source: "ngx_http_upstream_module (keepalive); A2 of S2: TIME_WAIT",
        fix: "upstream { ... keepalive 64; } with proxy_http_version 1.1; and \
              proxy_set_header Connection \"\"; (nginx before 1.29.7; later it is the default)",
        effect: "About half the work for each proxied request.",
        find: no_keepalive,
    },
];

fn configuration(facts: &Facts) -> Option<&Configuration> {
    facts.configuration.as_ref()
}

fn unbuffered_log(facts: &Facts) -> Option<Seen> {
    let mut logs = configuration(facts)?.access_logs.iter();
    let log = logs.find(|log| !log.buffered)?;
    Seen::warning(format!("access_log {} in {}", log.path, log.place))
}

fn accept_mutex(facts: &Facts) -> Option<Seen> {
    let configuration = configuration(facts).filter(|all| all.accept_mutex)?;
    let evidence = format!("accept_mutex on in {}", configuration.accept_mutex_at);
    if workers(facts)? > 1 {
        Seen::warning(evidence)
    } else {
        Seen::note(format!("{evidence}; with one worker it changes nothing"))
    }
}

fn no_open_file_cache(facts: &Facts) -> Option<Seen> {
    let configuration = configuration(facts).filter(|all| !all.open_file_cache)?;
    let root = configuration.roots.first()?;
    Seen::note(format!(
        "files are served ({root}), and there is no open_file_cache"
    ))
}

/// The number of workers that the configuration comes to here.
fn workers(facts: &Facts) -> Option<usize> {
    let word = &configuration(facts)?.workers;
    match word.text.as_str() {
        "auto" => Some(facts.processor.cpus.len().max(1)),
        _ => usize::try_from(word.number()?).ok(),
    }
}

fn said(facts: &Facts) -> String {
    let word = configuration(facts)
        .map(|all| all.workers.clone())
        .unwrap_or_default();
    let place = if word.is_written() {
        format!(" in {}", word.place)
    } else {
        " by default".to_owned()
    };
    format!("worker_processes {}{place}", word.text)
}

fn few_workers(facts: &Facts) -> Option<Seen> {
    let (workers, cpus) = (workers(facts)?, facts.usable_cpus());
    let evidence = format!("{}, {cpus} CPUs can be used", said(facts));
    match (workers < cpus, workers * 3 < cpus || workers == 1) {
        (true, true) => Seen::warning(evidence),
        (true, false) => Seen::note(evidence),
        (false, _) => None,
    }
}

fn many_workers(facts: &Facts) -> Option<Seen> {
    let (workers, cpus) = (workers(facts)?, facts.usable_cpus());
    (workers > cpus)
        .then(|| format!("{}, {cpus} CPUs can be used", said(facts)))
        .and_then(Seen::warning)
}

fn not_pinned(facts: &Facts) -> Option<Seen> {
    // Lanes of turnpike are always bound.
    let own = facts.running("turnpike").next().is_some() && facts.running("nginx").next().is_none();
    let configuration = configuration(facts).filter(|all| !all.affinity.is_written() && !own)?;
    let workers = workers(facts).filter(|workers| *workers > 1)?;
    let _ = configuration;
    Seen::note(format!("{workers} workers, and no worker_cpu_affinity"))
}

fn shared_listen(facts: &Facts) -> Option<Seen> {
    let workers = workers(facts).filter(|workers| *workers > 1)?;
    let listens = &configuration(facts)?.listens;
    let listen = listens.iter().find(|listen| {
        let same = listens
            .iter()
            .filter(|other| other.address == listen.address);
        !same.clone().any(|other| other.reuseport)
    })?;
    Seen::note(format!(
        "listen {} in {} serves {workers} workers",
        listen.address, listen.place
    ))
}

fn no_keepalive(facts: &Facts) -> Option<Seen> {
    let configuration = configuration(facts).filter(|all| all.keepalives.is_empty())?;
    let place = configuration.proxies.first()?;
    Seen::warning(format!(
        "requests are passed on in {place}, and no upstream block has keepalive"
    ))
}
