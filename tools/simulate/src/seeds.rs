//! Runs many seeds on all CPUs, or shows one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use turnpike_lane::sys::simulation::Fault;

use crate::run::{Bench, Options, Report};

/// The number of failed seeds after which a run ends: more give no new information.
const FAILED_MAX: usize = 10;

/// The seeds to run, and their options.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first seed.
    pub from: u64,
    /// The number of seeds.
    pub count: u64,
    /// The fault to inject.
    pub fault: Option<Fault>,
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds {
            from: 1,
            count: 10_000,
            fault: None,
        }
    }
}

/// The results of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The seeds that failed, with their errors.
    pub failed: Vec<(u64, Vec<String>)>,
    /// The requests that clients have sent completely.
    pub requests: u64,
    /// The answers that were compared to their last byte.
    pub answered: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (seed, problems) in &self.failed {
            for problem in problems {
                writeln!(out, "simulate: seed {seed}: {problem}")?;
            }
            writeln!(
                out,
                "simulate: see it with `cargo xtask simulate --seed {seed}`"
            )?;
        }
        let (seeds, failed) = (self.seeds, self.failed.len());
        let (requests, answered) = (self.requests, self.answered);
        write!(
            out,
            "simulate: {seeds} seeds, {failed} failed; {requests} requests, {answered} answered"
        )
    }
}

impl Summary {
    fn add(&mut self, seed: u64, report: Report) {
        self.seeds += 1;
        self.requests += report.requests;
        self.answered += report.answered;
        if !report.problems.is_empty() {
            self.failed.push((seed, report.problems));
        }
    }
}

/// A folder that is removed with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(number: u64) -> Result<Folder, String> {
        let name = format!("turnpike-simulate-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // No other code needs it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs seeds on all CPUs until some have failed.
///
/// # Errors
/// An error of the machine, not of the lane.
pub fn run_all(seeds: &Seeds) -> Result<Summary, String> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    let next = AtomicU64::new(seeds.from);
    let summary = Mutex::new(Summary::default());
    let lock = || {
        summary
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    let options = Options {
        fault: seeds.fault,
        is_traced: false,
    };
    let work = || {
        let folder = Folder::new(FOLDERS.fetch_add(1, Ordering::Relaxed))?;
        let bench = Bench::new(&folder.0).map_err(|error| format!("no bench: {error}"))?;
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.from + seeds.count || lock().failed.len() >= FAILED_MAX {
                return Ok(());
            }
            let report = bench.run(seed, options)?;
            lock().add(seed, report);
        }
    };
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(work)).collect();
        let ended = |_| Err("a worker has panicked".to_owned());
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(ended))
            .collect()
    });
    outcomes.into_iter().collect::<Result<(), String>>()?;
    let mut summary = summary.into_inner().unwrap_or_default();
    summary.failed.sort_unstable();
    Ok(summary)
}

/// Runs one seed and prints all actions. Returns whether there was no error.
///
/// # Errors
/// An error of the machine, not of the lane.
pub fn show(seed: u64, fault: Option<Fault>) -> Result<bool, String> {
    let folder = Folder::new(u64::MAX)?;
    let bench = Bench::new(&folder.0).map_err(|error| format!("no bench: {error}"))?;
    let options = Options {
        fault,
        is_traced: true,
    };
    let report = bench.run(seed, options)?;
    for line in &report.trace {
        println!("{line}");
    }
    for problem in &report.problems {
        println!("seed {seed}: {problem}");
    }
    if report.problems.is_empty() {
        println!("seed {seed}: no error");
    }
    Ok(report.problems.is_empty())
}
