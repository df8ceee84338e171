//! Counts of the system calls of threads by strace: they do not depend on the machine's speed, so
//! tests may assert them, and benchmarks show them beside times. strace also has calls fail that
//! the kernel cannot be made to refuse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// An accept4 without a connection: it ends a turn of the loop.
pub const ACCEPTED_NOBODY: &str = "accept4, nobody there";

/// The time limit for strace to be attached, and for threads to come to rest.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The options for a table of calls, errors and names.
const TABLE: [&str; 3] = ["-c", "-U", "calls,errors,name"];

/// A strace that counts on threads.
#[derive(Debug)]
pub struct Tracer {
    child: Child,
    report: PathBuf,
    threads: Vec<u32>,
}

impl Tracer {
    /// Starts to count the system calls of these threads. The report is written to that file.
    ///
    /// # Errors
    /// There is no strace, or it may not trace.
    pub fn count(threads: Vec<u32>, report: &Path) -> Result<Tracer, String> {
        Tracer::start(threads, report, &TABLE)
    }

    /// Has calls of these threads fail until the tracer is dropped, as strace's `inject=` says:
    /// `sendmsg:error=EAGAIN:when=2` is the second call of each thread.
    ///
    /// # Errors
    /// As [`Tracer::count`].
    pub fn failing(threads: Vec<u32>, report: &Path, what: &str) -> Result<Tracer, String> {
        let inject = format!("inject={what}");
        let call = what.split(':').next().unwrap_or_default();
        let trace = format!("trace={call}");
        Tracer::start(threads, report, &["-e", &trace, "-e", &inject])
    }

    fn start(threads: Vec<u32>, report: &Path, arguments: &[&str]) -> Result<Tracer, String> {
        let numbers = threads.iter().map(ToString::to_string);
        let child = Command::new("strace")
            .args(arguments)
            .arg("-o")
            .arg(report)
            .args(numbers.flat_map(|thread| ["-p".to_owned(), thread]))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(missing)?;
        let mut tracer = Tracer {
            child,
            report: report.to_owned(),
            threads,
        };
        // A strace that may not trace ends at once.
        let mut is_attached = false;
        await_true(|| {
            let is_over = tracer.child.try_wait().is_ok_and(|status| status.is_some());
            is_attached = tracer.is_attached();
            is_over || is_attached
        });
        if is_attached {
            Ok(tracer)
        } else {
            Err("strace may not trace the serving process".to_owned())
        }
    }

    /// Whether every call counts from now on. A thread has its tracer before it is stopped for the
    /// first time, and its calls until then go by; strace sleeps only when all have been told to
    /// stop.
    fn is_attached(&self) -> bool {
        self.threads.iter().all(|thread| is_traced(*thread)) && sleeps(self.child.id())
    }

    /// Stops counting, once the threads wait for events; returns the calls by name.
    ///
    /// # Errors
    /// strace left no report.
    pub fn end(mut self) -> Result<BTreeMap<String, u64>, String> {
        // A call is counted when it returns, which may be after its peer has seen its effect. What
        // does not come to rest shows in the numbers.
        await_true(|| self.threads.iter().all(|thread| sleeps(*thread)));
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // One that has ended by itself is waited for below.
            let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
        }
        self.child
            .wait()
            .map_err(|error| format!("strace: {error}"))?;
        counts_in(&self.report)
    }
}

/// Runs a program to its end, and counts the system calls of its threads from their start; returns
/// its output and the calls by name. The report is written to that file.
///
/// # Errors
/// There is no strace, or it left no report.
pub fn run(
    program: &Path,
    arguments: &[String],
    report: &Path,
) -> Result<(Output, BTreeMap<String, u64>), String> {
    let output = Command::new("strace")
        .args(TABLE)
        .args(["-f", "-o"])
        .args([report, program])
        .args(arguments)
        .output()
        .map_err(missing)?;
    Ok((output, counts_in(report)?))
}

fn missing(error: std::io::Error) -> String {
    format!("strace: {error}; please run: cargo xtask setup test")
}

fn counts_in(report: &Path) -> Result<BTreeMap<String, u64>, String> {
    let text = std::fs::read_to_string(report);
    let text = text.map_err(|error| format!("strace left no report: {error}"))?;
    Ok(counts(&text))
}

/// Waits until the condition is true, or the time limit has passed.
fn await_true(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() && Instant::now() < end {
        std::thread::sleep(LOOK_INTERVAL);
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // gone already after `end`
        let _ = self.child.wait();
    }
}

/// The calls by name in strace's table: rows of calls, errors if there are any, name.
fn counts(table: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match words[..] {
            [calls, name] => (calls, "0", name),
            [calls, errors, name] => (calls, errors, name),
            _ => continue,
        };
        let (Ok(calls), Ok(errors)) = (calls.parse::<u64>(), errors.parse::<u64>()) else {
            continue;
        };
        match name {
            "total" => {}
            "accept4" => {
                counts.insert(name.to_owned(), calls.saturating_sub(errors));
                counts.insert(ACCEPTED_NOBODY.to_owned(), errors);
            }
            name => drop(counts.insert(name.to_owned(), calls)),
        }
    }
    counts
}

/// Whether a thread sleeps, which lanes do only while they wait for events, or has ended.
fn sleeps(thread: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{thread}/stat")) else {
        return true;
    };
    // The state stands behind the name, which may have any bytes.
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.starts_with('S')
}

/// Whether a thread has a tracer.
fn is_traced(thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    let status = status.as_deref().unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|pid| pid.trim() != "0")
}

#[cfg(test)]
mod tests;
