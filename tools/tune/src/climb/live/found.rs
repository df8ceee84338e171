//! The server that runs: found by its pid file or its configuration, asked whether a configuration
//! is sound, and told to take it up. Nothing is changed here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use turnpike_host::Host;

use super::rewrite::Original;
use super::run::{PATIENCE, output};
use super::trust;
use super::words::Words;
use crate::system::{System, program_of};

const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A running server.
#[derive(Debug)]
pub(super) struct Found {
    /// The master process.
    pub(super) process: u32,
    /// When it was started; see `System::started`.
    started: String,
    pub(super) pid_file: PathBuf,
    pub(super) program: PathBuf,
    pub(super) configuration: PathBuf,
    /// The folder that paths begin at, where the server was told.
    prefix: Option<String>,
    /// Whether it has turnpike's control socket; nginx's workers tell otherwise what is in force.
    is_turnpike: bool,
}

/// Finds the server of a pid file or of a configuration, and whether it can be climbed on.
///
/// # Errors
/// Why not, in words.
pub(super) fn find(file: &Path) -> Result<Found, String> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    let number = std::str::from_utf8(&bytes).ok().map(str::trim);
    let (pid_file, configuration) = match number.and_then(|text| text.parse::<u32>().ok()) {
        Some(_) => (file.to_path_buf(), None),
        None => (pid_file(file)?, Some(file)),
    };
    let process = running(&pid_file)?;
    let program = program_of(process)
        .ok_or_else(|| format!("the program of process {process} cannot be seen"))?;
    if program.to_string_lossy().ends_with(" (deleted)") {
        let text = "was replaced since it was started: upgrade or restart the server first";
        return Err(format!("{} {text}", program.display()));
    }
    is_near(process)?;
    trust::check(process, &program)?;
    let words = Words::of(process);
    let prefix = words.option('p');
    let told = words
        .option('c')
        .map(|path| absolute(&path, prefix.as_deref()));
    let configuration = match (configuration, told) {
        (Some(given), Some(told)) if !is_same(given, &told) => {
            let told = told.display();
            return Err(format!(
                "process {process} serves another configuration than {name}: {told}"
            ));
        }
        (Some(given), _) => given.to_path_buf(),
        (None, Some(told)) => told,
        (None, None) => PathBuf::new(),
    };
    let mut found = Found {
        process,
        started: System::under("/").started(process),
        pid_file,
        is_turnpike: output(&program, &["-v".to_owned()], PATIENCE)
            .is_ok_and(|text| text.contains("turnpike")),
        program,
        configuration,
        prefix,
    };
    let said = found.test().map_err(|why| {
        let name = found.configuration.display();
        format!("{name} is refused before anything is changed: {why}")
    })?;
    if found.configuration.as_os_str().is_empty() {
        found.configuration =
            tested(&said).ok_or("the server does not say what it is tested by")?;
    }
    let configuration = found.configuration.canonicalize();
    let name = found.configuration.display().to_string();
    found.configuration = configuration.map_err(|error| format!("{name}: {error}"))?;
    found.may_reload()?;
    Ok(found)
}

impl Found {
    /// Says whether it still runs.
    ///
    /// # Errors
    /// It does not, or is another one.
    pub(super) fn check(&self) -> Result<(), String> {
        let process = self.process;
        if System::under("/").started(process) == self.started {
            Ok(())
        } else {
            Err(format!("the server is gone: process {process} has ended"))
        }
    }

    /// Has the server's program test the configuration on the disk; gives what it said.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn test(&self) -> Result<String, String> {
        output(&self.program, &self.with(&["-t"]), PATIENCE)
    }

    /// Has the server take up the configuration on the disk, and waits until it is in force.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn reload(&self) -> Result<(), String> {
        if self.is_turnpike {
            return output(&self.program, &self.with(&["reload"]), PATIENCE).map(drop);
        }
        let before = self.workers();
        self.signal(Some(Signal::SIGHUP))?;
        let end = Instant::now() + PATIENCE;
        // Workers that finish what they have are no workers any more by their titles.
        while self.workers().is_empty() || !self.workers().is_disjoint(&before) {
            self.check()?;
            if Instant::now() > end {
                let seconds = PATIENCE.as_secs();
                return Err(format!(
                    "no new worker of the server serves {seconds} s after a reload"
                ));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Whether reloads are possible, and can be seen.
    fn may_reload(&self) -> Result<(), String> {
        self.signal(None)?;
        if self.is_turnpike {
            let answer = output(&self.program, &self.with(&["generation"]), PATIENCE);
            return answer.map(drop).map_err(|why| {
                format!("the server's control socket does not tell when a reload is done: {why}")
            });
        }
        if self.workers().is_empty() {
            Err(format!(
                "process {} has no worker processes, so that it cannot reload",
                self.process
            ))
        } else {
            Ok(())
        }
    }

    fn signal(&self, signal: Option<Signal>) -> Result<(), String> {
        let process = i32::try_from(self.process).unwrap_or(i32::MAX);
        kill(Pid::from_raw(process), signal)
            .map_err(|error| format!("process {process} may not be told to reload: {error}"))
    }

    /// The processes that serve, by what the master and its children call themselves.
    fn workers(&self) -> BTreeSet<u32> {
        let host = Host::here();
        let family = host.family(self.process).into_iter().skip(1);
        let serves = |process: &u32| {
            let title = Words::of(*process).title();
            title.contains("worker process") && !title.contains("shutting down")
        };
        family.filter(serves).collect()
    }

    /// Words for the server's program, with its configuration.
    fn with(&self, words: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = words.iter().map(ToString::to_string).collect();
        if !self.configuration.as_os_str().is_empty() {
            words.extend(["-c".to_owned(), self.configuration.display().to_string()]);
        }
        if let Some(prefix) = &self.prefix {
            words.extend(["-p".to_owned(), prefix.clone()]);
        }
        words
    }
}

/// The pid file that a configuration names.
fn pid_file(configuration: &Path) -> Result<PathBuf, String> {
    let original = Original::read(configuration)?;
    match original.main("pid").map(Path::new) {
        Some(path) if path.is_absolute() => Ok(path.to_path_buf()),
        _ => Err(format!(
            "{} has no \"pid\" with an absolute path; give --live the server's pid file",
            configuration.display()
        )),
    }
}

/// The process of a pid file.
fn running(pid_file: &Path) -> Result<u32, String> {
    let name = pid_file.display();
    let text = std::fs::read_to_string(pid_file);
    let text = text.map_err(|error| format!("no server runs: {name}: {error}"))?;
    let process = text.trim().parse();
    let process: u32 = process.map_err(|_| format!("{name} has no number of a process"))?;
    if System::under("/").started(process).is_empty() {
        Err(format!(
            "no server runs: {name} names process {process}, which is gone"
        ))
    } else {
        Ok(process)
    }
}

/// Whether a process has the network and the files of this one.
fn is_near(process: u32) -> Result<(), String> {
    for (kind, words) in [("net", "network"), ("mnt", "mount")] {
        let link = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
        if link(&process.to_string()) != link("self") {
            return Err(format!(
                "process {process} is in another {words} namespace: run the climb there, by \
                 nsenter(1)"
            ));
        }
    }
    Ok(())
}

fn absolute(path: &str, prefix: Option<&str>) -> PathBuf {
    Path::new(prefix.unwrap_or("/")).join(path)
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The configuration that a test's words name.
fn tested(said: &str) -> Option<PathBuf> {
    let mut lines = said.lines();
    let path = lines.find_map(|line| {
        let (before, _) = line.split_once(" syntax is ok")?;
        Some(before.rsplit_once("the configuration file ")?.1)
    });
    path.map(PathBuf::from)
}

#[cfg(test)]
mod tests;
