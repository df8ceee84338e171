//! Runs jobs side by side: most tests wait for servers most of the time, and leave the processors
//! idle if they run one by one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Pass;
use super::job::Job;
use super::report::Report;
use crate::outcome::Outcome;

/// Jobs that run side by side: two for each of the two processors that CI has.
pub(super) const WORKERS: usize = 4;

/// The variable by which processes of tests are found: its value is the number of this process.
pub(super) const MARK: &str = "TURNPIKE_TEST_RUN";

/// Runs jobs and reports each; the report prints a group of tests when its last has ended.
///
/// # Errors
/// A job does not start. Its own failure is only reported.
pub(super) fn run(jobs: Vec<Job>, workers: usize, pass: &Pass, report: &mut Report) -> Outcome {
    report.expect(jobs.iter().map(Job::group));
    let jobs: Vec<Mutex<Option<Job>>> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let (next, (sender, ended)) = (AtomicUsize::new(0), mpsc::channel());
    let work = |sender: mpsc::Sender<_>| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at).and_then(|job| job.lock().ok()?.take()) else {
                return;
            };
            if sender.send(job.run(pass, &format!("unit-{at}"))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        for job in ended {
            report.add(job?);
        }
        Ok(())
    })
}

/// Ends the processes that tests left behind, and returns a line for each.
///
/// # Errors
/// `/proc` cannot be read.
pub(super) fn end_strays() -> Result<Vec<String>, String> {
    let mark = format!("{MARK}={}", std::process::id());
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let mut strays = Vec::new();
    for entry in entries.flatten() {
        let folder = entry.path();
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process that ends meanwhile, or is another user's, cannot be read.
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .all(|entry| entry != mark.as_bytes())
        {
            continue;
        }
        let line = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        strays.push(format!(
            "process {pid}: {}",
            line.replace('\0', " ").trim_end()
        ));
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // it may have ended meanwhile
    }
    Ok(strays)
}
