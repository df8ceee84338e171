//! Real runs: a server and a load generator in two network namespaces of our own, joined by a veth
//! pair. The machine's own network and settings are never touched; what a run has set goes with
//! the namespaces. Servers and load generators die with this process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use turnpike_host::Host;
use turnpike_lab::bench::{Process, Topology, is_asked};

use super::clock::{Clock, Meter};
use super::knobs::{Levels, Place};
use super::search::{Bench, Failure, Run};
use super::server::{Running, Server};

/// How long a load generator may go on after its time.
const LOAD_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The server has its namespace to itself, so any port is free.
const PORT: u16 = 8080;

/// Which server is driven, and how.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) server: Server,
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
}

/// The bench.
pub(crate) struct Field {
    wish: Wish,
    topology: Topology,
    folder: PathBuf,
    cpus: Vec<usize>,
    /// How the server's interface receives now.
    interface: [(&'static str, String); 5],
    /// Every run by its levels, for a record.
    pub(crate) runs: Vec<(String, Run)>,
}

impl Field {
    /// Makes the network and the files.
    ///
    /// # Errors
    /// In words; also where the network cannot be our own.
    pub(crate) fn new(wish: Wish, folder: &Path, cpus: Vec<usize>) -> Result<Field, String> {
        let (topology, why) = Topology::make("netns");
        if let Some(why) = why {
            return Err(why);
        }
        let html = folder.join("html");
        let page = "0".repeat(600);
        // A folder of that name that somebody else has made could hold anything.
        std::fs::create_dir(folder)
            .and_then(|()| std::fs::create_dir(&html))
            .and_then(|()| std::fs::write(html.join("index.html"), page))
            .map_err(|error| format!("{}: {error}", html.display()))?;
        Ok(Field {
            wish,
            topology,
            folder: folder.to_path_buf(),
            interface: Levels::default().interface(&cpus),
            cpus,
            runs: Vec::new(),
        })
    }

    /// Changes how the server's interface receives, where these levels differ from what is.
    fn receive(&mut self, levels: Levels) -> Result<(), String> {
        let start = Levels::default().interface(&self.cpus);
        let wanted = levels.interface(&self.cpus);
        // What needs something else is switched on after it and off before it.
        let off = (0..wanted.len())
            .rev()
            .filter(|at| wanted[*at] == start[*at]);
        let on = (0..wanted.len()).filter(|at| wanted[*at] != start[*at]);
        for at in off.chain(on) {
            if self.interface[at] != wanted[at] {
                let (name, value) = &wanted[at];
                self.topology.change_interface(name, value)?;
                self.interface[at] = wanted[at].clone();
            }
        }
        Ok(())
    }

    fn start(&mut self, levels: Levels) -> Result<Running, String> {
        self.receive(levels)?;
        for (path, value) in levels.settings() {
            let changed = self.topology.change(path, value);
            changed.map_err(|error| format!("{path}: {error}"))?;
        }
        let folder = self.folder.display().to_string();
        let place = place(&folder, self.topology.address(), &self.cpus);
        self.wish.server.start(levels, &place, &self.topology)
    }

    /// The counters of the server's namespace.
    fn counters(&self) -> Counters {
        // `/proc/net` is that of the process's first thread; this thread has its own.
        let read = || Host::here().network_counters_of("thread-self");
        let counters = self.topology.at_server(read).ok().flatten();
        let counters = counters.unwrap_or_default();
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        Counters {
            overflows: count("TcpExt.ListenOverflows"),
            cookies: count("TcpExt.SyncookiesSent"),
            opened: count("Tcp.PassiveOpens"),
        }
    }

    fn drive(&self) -> Result<Value, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let url = format!("http://{}:{PORT}/index.html", self.topology.address());
        let report = self.folder.join("load.json");
        let words = [
            program.display().to_string(),
            "load".to_owned(),
            "--quiet".to_owned(),
            format!("--json={}", report.display()),
            "--threads=1".to_owned(),
            format!("--connections={}", self.wish.connections),
            "--connreqs=1".to_owned(),
            "--linger0".to_owned(),
            "--warmup=0.2s".to_owned(),
            format!("--duration={}s", self.wish.seconds),
            "--max-errors=1000G".to_owned(),
            url,
        ];
        let words = self.topology.driver_words(words.to_vec());
        let cpus = [client(&self.cpus)];
        let mut load = Process::start(&words, &cpus, &self.folder, "load", Signal::SIGINT)?;
        let end = Instant::now() + Duration::from_secs_f64(self.wish.seconds) + LOAD_PATIENCE;
        while load.ended().is_none() {
            if is_asked() {
                return Err("interrupted".to_owned());
            }
            if Instant::now() > end {
                return Err("the load generator does not end".to_owned());
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        let text = std::fs::read_to_string(&report).map_err(|error| {
            format!(
                "no report of the load generator: {error}; {}",
                load.stderr()
            )
        })?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", report.display()))
    }
}

/// What the kernel has counted for the server.
#[derive(Clone, Copy)]
struct Counters {
    overflows: u64,
    cookies: u64,
    /// Connections of clients.
    opened: u64,
}

impl Counters {
    fn since(self, before: Counters) -> Counters {
        Counters {
            overflows: self.overflows.saturating_sub(before.overflows),
            cookies: self.cookies.saturating_sub(before.cookies),
            opened: self.opened.saturating_sub(before.opened),
        }
    }
}

impl Bench for Field {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        if is_asked() {
            return Err(Failure::Climb("interrupted".to_owned()));
        }
        if let Some(why) = pressed(&Host::here()) {
            return Err(Failure::Climb(why));
        }
        // Ctrl-C during a run is no fault of the levels.
        let failure = |why: String| match is_asked() {
            true => Failure::Climb("interrupted".to_owned()),
            false => Failure::Levels(why),
        };
        let clock = Clock::start();
        let mut server = self.start(levels).map_err(failure)?;
        let before = self.counters();
        let (driving, meter) = (Clock::start(), Meter::start());
        let report = self.drive().map_err(failure)?;
        // The load generator has ended, so that what runs is the server.
        let (driven, server_us) = (driving.spent(), meter.spent_us());
        let counters = self.counters().since(before);
        server.check().map_err(failure)?;
        drop(server);
        let spent = clock.spent();
        let _ = std::fs::remove_file(self.folder.join("access.log"));
        // Those of the same time as the CPU time: the load generator counts none of its warm-up.
        let opened = counters.opened.max(1) as f64;
        let run = Run {
            // Whole numbers, so that a record decides as the climb did.
            connections_per_s: number("requests_per_s", &report).round(),
            p99_us: number("p99", &report["latency_us"]).round(),
            errors: report["errors_total"].as_u64().unwrap_or(0),
            answered: report["requests"]["answered"].as_u64().unwrap_or(0),
            client_limited: report["client_limited"].as_bool().unwrap_or(false),
            overflows: counters.overflows,
            cpu_us: hundredths(spent.ours_us / opened),
            server_us: hundredths(server_us / opened),
            others_share: hundredths(spent.others_share),
            softirq_share: hundredths(driven.softirq_share),
            idle_share: hundredths(driven.idle_share),
            cookies: Some(counters.cookies),
        };
        self.runs.push((levels.key(), run.clone()));
        Ok(run)
    }
}

/// The CPU that the load generator is bound to.
fn client(cpus: &[usize]) -> usize {
    cpus.first().copied().unwrap_or(0)
}

/// The configuration of levels for others: its paths begin at the folder that `-p` names.
///
/// # Errors
/// A value that the server's study does not have.
pub(crate) fn portable(server: &Server, levels: Levels, cpus: &[usize]) -> Result<String, String> {
    server.configuration(levels, &place(".", "*", cpus))
}

fn place<'a>(folder: &'a str, address: &'a str, cpus: &'a [usize]) -> Place<'a> {
    Place {
        folder,
        address,
        port: PORT,
        client: client(cpus),
        cpus,
    }
}

/// Few digits, so that a record decides as the climb did and stays short.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn number(name: &str, report: &Value) -> f64 {
    report[name].as_f64().unwrap_or(0.0)
}

/// Why the machine has no memory for more runs.
fn pressed(host: &Host) -> Option<String> {
    /// With less, the kernel soon ends processes, and perhaps not ours.
    const AVAILABLE_BYTES_MIN: u64 = 128 << 20;
    /// The share of the last ten seconds, in percent, in which all work waited for memory.
    const FULL_PERCENT_MAX: f64 = 10.0;
    let memory = host.memory();
    let full = host.pressure().memory_full;
    if memory.total_bytes > 0 && memory.available_bytes < AVAILABLE_BYTES_MIN {
        let available = memory.available_bytes >> 20;
        return Some(format!(
            "the machine has only {available} MB of memory left"
        ));
    }
    (full > FULL_PERCENT_MAX)
        .then(|| format!("all work waits for memory in {full} % of the time (PSI)"))
}

#[cfg(test)]
mod tests;
