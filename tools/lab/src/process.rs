//! The lab's processes: each runs on its CPUs in its own group, and is stopped with all its
//! descendants when dropped. Only our own processes are signalled.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use turnpike_host::Host;

use crate::sys;

/// The time limit for a process to end after the signal.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two checks.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A running process with its descendants.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stop: Signal,
    stderr: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a command; its output goes to the files `NAME.out` and `NAME.err` of the folder.
    ///
    /// # Errors
    /// The message.
    pub fn start(
        words: &[String],
        cpus: &[usize],
        folder: &Path,
        name: &str,
        stop: Signal,
    ) -> Result<Process, String> {
        let Some((program, arguments)) = words.split_first() else {
            return Err("the command is empty".to_owned());
        };
        let path = find(program).ok_or_else(|| format!("\"{program}\" is not installed"))?;
        let file = |ending: &str| {
            let path = folder.join(format!("{name}.{ending}"));
            File::create(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut command = Command::new(path);
        command
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?);
        sys::confine(&mut command, cpus);
        let child = command
            .spawn()
            .map_err(|error| format!("\"{program}\" does not start: {error}"))?;
        Ok(Process {
            child,
            stop,
            stderr: folder.join(format!("{name}.err")),
            ended: None,
        })
    }

    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// The end of its standard error.
    pub fn stderr(&self) -> String {
        tail(&self.stderr)
    }

    /// Stops it, with everything it started.
    pub fn stop(&mut self) {
        if self.ended().is_some() && descendants(self.pid()).len() <= 1 {
            return;
        }
        let family = descendants(self.pid());
        signal(self.pid(), self.stop);
        await_true(|| self.ended().is_some());
        // The remaining processes have lost their parent, or it does not react.
        for pid in family.iter().filter(|pid| is_alive(**pid)) {
            signal(*pid, Signal::SIGKILL);
        }
        if self.ended.is_none() {
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
        await_true(|| !family.iter().any(|pid| is_alive(*pid)));
    }
}

/// Waits until the condition is true, or the time limit has passed.
fn await_true(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + STOP_PATIENCE;
    while !is_so() && Instant::now() < end {
        std::thread::sleep(LOOK_INTERVAL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

fn is_alive(pid: u32) -> bool {
    let process = Host::here().process(pid);
    process.is_some_and(turnpike_host::Process::is_alive)
}

/// The end of a text file, its last lines joined by `; `.
pub(crate) fn tail(path: &Path) -> String {
    /// More lines would not be one message.
    const LINES: usize = 4;
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

/// The path of a program, also searched outside of a plain user's PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// A process and all that descend from it.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    Host::here().family(pid)
}

/// Nanoseconds for which the threads of these processes have run since their start.
pub(crate) fn run_ns(family: &[u32]) -> u64 {
    let host = Host::here();
    family.iter().map(|process| host.run_ns(*process)).sum()
}

#[cfg(test)]
mod tests;
