//! The watchdog: a process that waits until the climb has ended, and removes what it has left if it
//! died; on a live server it puts back what the journal says. It holds the other end of a pipe,
//! which the kernel closes with the climb, however it ends.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::journal::Journal;
use crate::steps;
use crate::system::System;

/// What the climb says when it has cleaned up by itself.
const DONE: &[u8] = b"done";

const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Where network namespaces with names are.
const NAMESPACES: &str = "/run/netns";
/// What the names of a climb's namespaces begin with; its process follows.
const NAMESPACE: &str = "turnpike-lab-";
/// What the name of a climb's folder begins with; its process follows.
const FOLDER: &str = "turnpike-climb-";

/// The climb's end.
pub(crate) struct Guard {
    child: Child,
    pipe: ChildStdin,
}

/// Starts the watchdog. `state` is the folder of the journal of a climb on a live server.
///
/// # Errors
/// In words.
pub(crate) fn start(folder: &Path, state: Option<&Path>) -> Result<Guard, String> {
    let wrong = |error: std::io::Error| format!("the watchdog does not start: {error}");
    let program = std::env::current_exe().map_err(wrong)?;
    let process = std::process::id().to_string();
    let mut command = Command::new(program);
    // A group of its own, so that Ctrl-C reaches the climb alone.
    command
        .args(["tune", "guard", &process])
        .arg(folder)
        .args(state)
        .process_group(0);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(wrong)?;
    let pipe = child.stdin.take().ok_or("the watchdog has no pipe")?;
    Ok(Guard { child, pipe })
}

impl Guard {
    /// Tells the watchdog that nothing is left to do.
    pub(crate) fn release(mut self) {
        let _ = self.pipe.write_all(DONE);
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// The watchdog itself: `tune guard PROCESS FOLDER [STATE]`.
pub(crate) fn run(process: u32, folder: &Path, state: Option<&Path>) -> ExitCode {
    let mut said = Vec::new();
    let _ = std::io::stdin()
        .take(DONE.len() as u64)
        .read_to_end(&mut said);
    if said != DONE {
        if let Some(state) = state {
            put_back(process, state);
        }
        clean(process, folder);
    }
    ExitCode::SUCCESS
}

/// Puts back what a dead climb has changed on a live server.
fn put_back(process: u32, state: &Path) {
    /// A process that was killed is gone once the kernel has freed its memory.
    const TRIES_MAX: usize = 3000;
    let system = System::under("/");
    for _ in 0..TRIES_MAX {
        // The kernel may close the pipe before the journal.
        if system.started(process).is_empty()
            && let Ok(mut journal) = Journal::open(state)
        {
            let _ = steps::recover(&system, &mut journal);
            return;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// Removes what climbs have left whose watchdog died with them, as at a loss of power.
pub(crate) fn clean_dead() {
    let left = names(Path::new(NAMESPACES)).into_iter();
    let left = left.chain(names(&std::env::temp_dir()));
    let processes: BTreeSet<u32> = left.filter_map(|name| climb_of(&name)).collect();
    let is_dead = |process: &u32| !Path::new("/proc").join(process.to_string()).exists();
    for process in processes.into_iter().filter(is_dead) {
        clean(process, &folder(process));
    }
}

/// The folder of a climb's files.
pub(crate) fn folder(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("{FOLDER}{process}"))
}

/// The climb that a namespace or a folder belongs to, by its name.
fn climb_of(name: &str) -> Option<u32> {
    let digits = match name.strip_prefix(NAMESPACE) {
        Some(rest) => rest.split('-').next()?,
        None => name.strip_prefix(FOLDER)?,
    };
    digits.parse().ok()
}

/// Removes the namespaces and the folder of a climb that is gone, with the processes that are left
/// in them: a server's workers outlive their master.
fn clean(process: u32, folder: &Path) {
    let begin = format!("{NAMESPACE}{process}-");
    for name in names(Path::new(NAMESPACES)) {
        if name.starts_with(&begin) {
            end_processes(&name);
            let _ = Command::new("ip").args(["netns", "delete", &name]).status();
        }
    }
    if folder.ends_with(format!("{FOLDER}{process}")) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Ends what runs in a namespace of ours. A process may start another one meanwhile, so it looks
/// again until nothing is left.
fn end_processes(namespace: &str) {
    /// A server starts its workers anew at most as often as it has processes; then it is gone.
    const ROUNDS_MAX: usize = 50;
    for _ in 0..ROUNDS_MAX {
        let output = Command::new("ip")
            .args(["netns", "pids", namespace])
            .output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let processes: Vec<i32> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        if processes.is_empty() {
            return;
        }
        for process in processes {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::climb_of;

    #[test]
    fn only_what_a_climb_has_made_is_a_climbs() {
        let cases = [
            ("turnpike-climb-12", Some(12)),
            ("turnpike-lab-12-0-server", Some(12)),
            ("turnpike-lab-x-0-server", None),
            ("turnpike-climb-", None),
            ("turnpike-climb-12-mine", None),
            ("my-turnpike-climb-12", None),
            ("blue", None),
        ];
        for (name, expected) in cases {
            assert_eq!(climb_of(name), expected, "{name}");
        }
    }
}
