//! What a climb moves: knobs with their levels, the worst first, and the configuration and settings
//! that they come to. Pure.

use crate::placement::{Split, mask};

/// One thing that can be set to several levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Knob {
    Workers,
    AccessLog,
    Backlog,
    Somaxconn,
    AcceptMutex,
    OpenFileCache,
    SynCookies,
    MultiAccept,
    Deferred,
    Autocorking,
    PacketSteering,
    Napi,
    Addresses,
    Placement,
    BusyPoll,
}

impl Knob {
    pub(crate) const ALL: [Knob; 15] = [
        Knob::Workers,
        Knob::AccessLog,
        Knob::Backlog,
        Knob::Somaxconn,
        Knob::AcceptMutex,
        Knob::OpenFileCache,
        Knob::SynCookies,
        Knob::MultiAccept,
        Knob::Deferred,
        Knob::Autocorking,
        Knob::PacketSteering,
        Knob::Napi,
        Knob::Addresses,
        Knob::Placement,
        Knob::BusyPoll,
    ];
    /// Knobs whose start is deliberately bad. A quick climb tries these alone, and a grid has their
    /// 432 combinations: all knobs would have 663,552.
    pub(crate) const SEVEN: [Knob; 7] = [
        Knob::Workers,
        Knob::AccessLog,
        Knob::Backlog,
        Knob::Somaxconn,
        Knob::AcceptMutex,
        Knob::OpenFileCache,
        Knob::SynCookies,
    ];

    /// The knob's name, as studies give it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Knob::Workers => "workers",
            Knob::AccessLog => "access_log",
            Knob::Backlog => "backlog",
            Knob::Somaxconn => "somaxconn",
            Knob::AcceptMutex => "accept_mutex",
            Knob::OpenFileCache => "open_file_cache",
            Knob::SynCookies => "tcp_syncookies",
            Knob::MultiAccept => "multi_accept",
            Knob::Deferred => "deferred",
            Knob::Autocorking => "tcp_autocorking",
            Knob::PacketSteering => "rps_cpus",
            Knob::Napi => "napi",
            Knob::Addresses => "addresses",
            Knob::Placement => "placement",
            Knob::BusyPoll => "busy_poll",
        }
    }

    /// The levels, by what a table says of them. A climb starts with the first; of the seven, that
    /// is the bad one.
    pub(crate) fn levels(self) -> &'static [&'static str] {
        match self {
            Knob::Workers => &[
                "one worker, on the client's CPU",
                "one worker, on another CPU",
                "a worker for each CPU",
            ],
            Knob::AccessLog => &[
                "access log without a buffer",
                "access log with a buffer of 64 KB",
                "access log off",
            ],
            Knob::Backlog => &["backlog 16", "backlog 4096"],
            Knob::Somaxconn => &["somaxconn 16", "somaxconn 4096"],
            Knob::AcceptMutex => &["accept_mutex on", "accept_mutex off", "reuseport"],
            Knob::OpenFileCache => &["no open_file_cache", "open_file_cache max=1000"],
            Knob::SynCookies => &["tcp_syncookies 1", "tcp_syncookies 0"],
            Knob::MultiAccept => &["multi_accept off", "multi_accept on"],
            Knob::Deferred => &["listen without deferred", "listen ... deferred"],
            Knob::Autocorking => &["tcp_autocorking 1", "tcp_autocorking 0"],
            Knob::PacketSteering => &["no rps_cpus", "rps_cpus of all CPUs"],
            Knob::Napi => &[
                "packets received without NAPI",
                "packets received by NAPI with GRO",
                "packets received by threaded NAPI",
                "packets received by NAPI with deferred interrupts",
            ],
            Knob::Addresses => &["one listen for all addresses", "a listen for each address"],
            Knob::Placement => &[
                "no placement",
                "placement by thread",
                "placement by core",
                "placement by socket",
            ],
            Knob::BusyPoll => &[
                "no busy polling",
                "epoll busy polling for 50 µs, NAPI with GRO",
                "busy_poll and busy_read for 50 µs, NAPI with GRO",
            ],
        }
    }
}

/// A level for each knob, by the order of [`Knob::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Levels([usize; Knob::ALL.len()]);

impl Levels {
    pub(crate) fn level(self, knob: Knob) -> usize {
        self.0[knob as usize]
    }

    /// The same with another level of a knob.
    pub(crate) fn with(mut self, knob: Knob, level: usize) -> Levels {
        self.0[knob as usize] = level;
        self
    }

    /// The levels as digits: a key of recorded runs.
    pub(crate) fn key(self) -> String {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Every combination of the seven knobs' levels.
    pub(crate) fn grid() -> Vec<Levels> {
        let mut grid = vec![Levels::default()];
        for knob in Knob::SEVEN {
            let with = |level: usize| grid.iter().map(move |levels| levels.with(knob, level));
            grid = (0..knob.levels().len()).flat_map(with).collect();
        }
        grid
    }

    /// Kernel settings of the server's network namespace.
    pub(crate) fn settings(self) -> [(&'static str, &'static str); 3] {
        let somaxconn = ["16", "4096"][self.level(Knob::Somaxconn)];
        let cookies = ["1", "0"][self.level(Knob::SynCookies)];
        let autocorking = ["1", "0"][self.level(Knob::Autocorking)];
        [
            ("net/core/somaxconn", somaxconn),
            ("net/ipv4/tcp_syncookies", cookies),
            ("net/ipv4/tcp_autocorking", autocorking),
        ]
    }

    /// Settings of the server's end of the veth pair, in the order in which they are switched on: a
    /// thread needs NAPI, which a veth has only with GRO (kernel 5.13), and so do interrupts that
    /// wait while there is work (kernel 5.8).
    pub(crate) fn interface(
        self,
        cpus: &[usize],
        split: Option<&Split>,
    ) -> [(&'static str, String); 5] {
        let steering: &[usize] = match split {
            Some(split) => &split.interrupts,
            None if self.level(Knob::PacketSteering) == 1 => cpus,
            None => &[],
        };
        let napi = self.level(Knob::Napi);
        // What is polled has to be a queue.
        let needs_queue = napi > 0 || self.level(Knob::BusyPoll) > 0;
        let gro = if needs_queue { "on" } else { "off" };
        let threaded = ["0", "0", "1", "0"][napi];
        // Polls without a packet until interrupts are on again, and nanoseconds between them.
        let polls = ["0", "0", "0", "2"][napi];
        let pause_ns = ["0", "0", "0", "200000"][napi];
        [
            ("gro", gro.to_owned()),
            ("threaded", threaded.to_owned()),
            ("gro_flush_timeout", pause_ns.to_owned()),
            ("napi_defer_hard_irqs", polls.to_owned()),
            ("queues/rx-0/rps_cpus", mask(steering)),
        ]
    }

    /// The CPUs of the workers, one for each.
    pub(crate) fn workers(self, place: &Place<'_>) -> Vec<usize> {
        let Place { client, cpus, .. } = place;
        if let Some(split) = place.split {
            return split.workers.clone();
        }
        let other = cpus.iter().copied().find(|cpu| cpu != client);
        match self.level(Knob::Workers) {
            0 => vec![*client],
            1 => vec![other.unwrap_or(*client)],
            _ => cpus.to_vec(),
        }
    }

    /// The configuration, which nginx and turnpike both read.
    pub(crate) fn configuration(self, place: &Place<'_>) -> String {
        let Place { folder, .. } = place;
        let workers = self.workers(place);
        let masks: Vec<String> = workers
            .iter()
            .map(|cpu| format!("1{}", "0".repeat(*cpu)))
            .collect();
        let log = match self.level(Knob::AccessLog) {
            0 => format!("{folder}/access.log combined"),
            1 => format!("{folder}/access.log combined buffer=64k flush=1s"),
            _ => "off".to_owned(),
        };
        let listens = self.listens(place);
        let mutex = ["on", "off", "off"][self.level(Knob::AcceptMutex)];
        let multi = ["off", "on"][self.level(Knob::MultiAccept)];
        let cache = ["off", "max=1000"][self.level(Knob::OpenFileCache)];
        format!(
            "daemon off;\nerror_log {folder}/error.log;\npid {folder}/pid;\n\
             worker_processes {};\nworker_cpu_affinity {};\nworker_rlimit_nofile 100000;\n\
             events {{ worker_connections 16384; accept_mutex {mutex}; \
             multi_accept {multi}; }}\n\
             http {{\n  access_log {log};\n  open_file_cache {cache};\n  server {{\n\
             {listens}    root {folder}/html;\n  }}\n}}\n",
            workers.len(),
            masks.join(" "),
        )
    }

    /// The lines of `listen`.
    fn listens(self, place: &Place<'_>) -> String {
        let reuseport = ["", "", " reuseport"][self.level(Knob::AcceptMutex)];
        let deferred = ["", " deferred"][self.level(Knob::Deferred)];
        let backlog = ["16", "4096"][self.level(Knob::Backlog)];
        let listen = |address: &str| {
            let port = place.port;
            format!("    listen {address}:{port} backlog={backlog}{reuseport}{deferred};\n")
        };
        match (self.level(Knob::Addresses), place.addresses) {
            (0, _) => listen("*"),
            // For a machine whose addresses are its own.
            (_, []) => format!("    # one for each address of the machine\n{}", listen("*")),
            (_, addresses) => addresses.iter().map(|address| listen(address)).collect(),
        }
    }
}

/// Where a server runs.
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a str,
    /// The server's addresses; none where they are not known.
    pub(crate) addresses: &'a [String],
    pub(crate) port: u16,
    /// The client's CPU.
    pub(crate) client: usize,
    /// The CPUs that may be used.
    pub(crate) cpus: &'a [usize],
    /// How CPUs are split between interrupts and workers, at levels that split them.
    pub(crate) split: Option<&'a Split>,
}

#[cfg(test)]
mod tests;
