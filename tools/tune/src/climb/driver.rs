//! A run of the load generator, and the figures that it and the kernel give.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use turnpike_host::Host;
use turnpike_lab::bench::{Process, is_asked};

use super::clock::Spent;
use super::search::Run;

/// How long a load generator may go on after its time.
const LOAD_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A load: a connection for each request.
pub(super) struct Load<'a> {
    /// What is asked for, by turns of chance.
    pub(super) urls: Vec<String>,
    pub(super) connections: usize,
    pub(super) seconds: f64,
    /// Where its report goes.
    pub(super) folder: &'a Path,
    /// The CPUs that it runs on.
    pub(super) cpus: &'a [usize],
}

impl Load<'_> {
    /// Drives the server; `within` gives the words that start the load generator where it belongs.
    ///
    /// # Errors
    /// Why there is no report.
    pub(super) fn drive(
        &self,
        within: impl FnOnce(Vec<String>) -> Vec<String>,
    ) -> Result<Value, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let report = self.folder.join("load.json");
        let mut words = vec![
            program.display().to_string(),
            "load".to_owned(),
            "--quiet".to_owned(),
            format!("--json={}", report.display()),
            "--threads=1".to_owned(),
            format!("--connections={}", self.connections),
            "--connreqs=1".to_owned(),
            "--linger0".to_owned(),
            "--warmup=0.2s".to_owned(),
            format!("--duration={}s", self.seconds),
            "--max-errors=1000G".to_owned(),
        ];
        words.extend(self.urls.iter().cloned());
        let words = within(words);
        let mut load = Process::start(&words, self.cpus, self.folder, "load", Signal::SIGINT)?;
        let end = Instant::now() + Duration::from_secs_f64(self.seconds) + LOAD_PATIENCE;
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
#[derive(Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) overflows: u64,
    pub(super) cookies: u64,
    /// Connections of clients.
    pub(super) opened: u64,
}

impl Counters {
    /// The counters of this thread's network namespace.
    pub(super) fn here() -> Counters {
        // `/proc/net` is that of the process's first thread; this thread has its own.
        let counters = Host::here().network_counters_of("thread-self");
        let counters = counters.unwrap_or_default();
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        Counters {
            overflows: count("TcpExt.ListenOverflows"),
            cookies: count("TcpExt.SyncookiesSent"),
            opened: count("Tcp.PassiveOpens"),
        }
    }

    pub(super) fn since(self, before: Counters) -> Counters {
        Counters {
            overflows: self.overflows.saturating_sub(before.overflows),
            cookies: self.cookies.saturating_sub(before.cookies),
            opened: self.opened.saturating_sub(before.opened),
        }
    }
}

/// A run's figures: the load generator's report, what the kernel counted meanwhile, CPU time while
/// it ran and in all, and the server's CPU time while it ran.
pub(super) fn figures(
    report: &Value,
    counters: Counters,
    driven: Spent,
    spent: Spent,
    server_us: f64,
) -> Run {
    // Those of the same time as the CPU time: the load generator counts none of its warm-up.
    let opened = counters.opened.max(1) as f64;
    Run {
        // Whole numbers, so that a record decides as the climb did.
        connections_per_s: number("requests_per_s", report).round(),
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
    }
}

/// Few digits, so that a record decides as the climb did and stays short.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn number(name: &str, report: &Value) -> f64 {
    report[name].as_f64().unwrap_or(0.0)
}
