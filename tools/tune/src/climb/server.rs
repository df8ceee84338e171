//! The server of a climb: a program that reads nginx's configuration, or the contender of a study,
//! whose factors are knobs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use turnpike_host::Host;
use turnpike_lab::bench::{Process, Served, Serving, Spot, Topology, is_asked};

use super::knobs::{Knob, Levels, Place};

/// How long a server may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Knobs that are words of a configuration, so that a study has to know them. Workers are there by
/// their CPUs, and the others are the kernel's.
const CONFIGURED: [Knob; 7] = [
    Knob::AccessLog,
    Knob::Backlog,
    Knob::AcceptMutex,
    Knob::OpenFileCache,
    Knob::MultiAccept,
    Knob::Deferred,
    Knob::Addresses,
];

/// A server that can be started at any levels.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// A program that takes nginx's `-c`.
    Program(PathBuf),
    /// The contender of a study, and its file.
    Study(Box<Served>, String),
}

/// A server that runs until it is dropped.
pub(crate) enum Running {
    Program(Process),
    Study(Serving),
}

impl Running {
    /// Says whether it still runs.
    ///
    /// # Errors
    /// It has ended; the message has its output.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self {
            Running::Study(serving) => serving.check(),
            Running::Program(process) => match process.ended() {
                None => Ok(()),
                Some(_) => Err(format!("the server died: {}", process.stderr())),
            },
        }
    }
}

impl Server {
    /// The server of a command line: a study by the ending of its file, else a program.
    ///
    /// # Errors
    /// The study has a mistake, or a factor that is no knob.
    pub(crate) fn of(word: &Path) -> Result<Server, String> {
        if word.extension().is_none_or(|ending| ending != "toml") {
            return Ok(Server::Program(word.to_path_buf()));
        }
        let file = word.display().to_string();
        let served = Served::load(&file)?;
        for (name, levels) in served.factors() {
            let Some(knob) = knob_of(name) else {
                let known = CONFIGURED.map(Knob::name).join(", ");
                let text =
                    format!("{file}: \"{name}\" is not a setting of a climb; there are {known}");
                return Err(text);
            };
            let unknown = levels
                .into_iter()
                .find(|level| !knob.levels().contains(level));
            if let Some(level) = unknown {
                let known = knob.levels().join(", ");
                let text = format!("{file}: {name} has no level \"{level}\"; there are {known}");
                return Err(text);
            }
        }
        Ok(Server::Study(Box::new(served), file))
    }

    /// The configuration for a place.
    ///
    /// # Errors
    /// A value that the study does not have.
    pub(crate) fn configuration(
        &self,
        levels: Levels,
        place: &Place<'_>,
    ) -> Result<String, String> {
        match self {
            Server::Program(_) => Ok(levels.configuration(place)),
            Server::Study(served, _) => {
                let workers = levels.workers(place);
                served.configuration(&spot(place, &workers), |name| level(levels, name))
            }
        }
    }

    /// Starts the server in its namespace and waits until it listens.
    ///
    /// # Errors
    /// The server's output; or which level it does not have.
    pub(crate) fn start(
        &self,
        levels: Levels,
        place: &Place<'_>,
        topology: &Topology,
    ) -> Result<Running, String> {
        match self {
            Server::Program(program) => {
                let text = levels.configuration(place);
                start(program, &text, place, topology).map(Running::Program)
            }
            Server::Study(served, file) => {
                if let Some(why) = missing(served, file, levels) {
                    return Err(why);
                }
                let folder = fresh(Path::new(place.folder))?;
                let constant = Path::new(place.folder).join("constant");
                let workers = levels.workers(place);
                let spot = Spot {
                    folder: &folder,
                    constant: &constant,
                    ..spot(place, &workers)
                };
                let serving = served.start(&spot, topology, |name| level(levels, name));
                serving.map(Running::Study)
            }
        }
    }
}

/// An empty folder: a study places its files anew for each start.
fn fresh(folder: &Path) -> Result<PathBuf, String> {
    let folder = folder.join("study");
    let _ = std::fs::remove_dir_all(&folder);
    let made = std::fs::create_dir(&folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn knob_of(factor: &str) -> Option<Knob> {
    CONFIGURED.into_iter().find(|knob| knob.name() == factor)
}

/// The level of a factor, by its name.
fn level(levels: Levels, factor: &str) -> &'static str {
    knob_of(factor).map_or("", |knob| knob.levels()[levels.level(knob)])
}

/// Why a study has no such levels; `None` where it has them. What it does not set is at its start.
fn missing(served: &Served, file: &str, levels: Levels) -> Option<String> {
    let has = |knob: Knob| {
        let wanted = knob.levels()[levels.level(knob)];
        let mut factors = served.factors();
        match factors.find(|(name, _)| *name == knob.name()) {
            Some((_, known)) => known.contains(&wanted),
            None => levels.level(knob) == 0,
        }
    };
    let knob = CONFIGURED.into_iter().find(|knob| !has(*knob))?;
    let wanted = knob.levels()[levels.level(knob)];
    Some(format!(
        "{file} has no {} with the level \"{wanted}\"",
        knob.name()
    ))
}

fn spot<'a>(place: &'a Place<'_>, workers: &'a [usize]) -> Spot<'a> {
    Spot {
        folder: Path::new(place.folder),
        constant: Path::new(place.folder),
        address: place.addresses.first().map_or("*", String::as_str),
        port: place.port,
        server_cpus: workers,
        driver_cpus: std::slice::from_ref(&place.client),
    }
}

fn start(
    program: &Path,
    configuration: &str,
    place: &Place<'_>,
    topology: &Topology,
) -> Result<Process, String> {
    let folder = Path::new(place.folder);
    let file = folder.join("server.conf");
    std::fs::write(&file, configuration).map_err(|error| format!("{}: {error}", file.display()))?;
    let words = [program, Path::new("-c"), &file];
    let words = words.map(|word| word.display().to_string()).to_vec();
    let words = topology.server_words(words);
    let mut server = Process::start(&words, place.cpus, folder, "server", Signal::SIGTERM)?;
    let end = Instant::now() + START_PATIENCE;
    while !listens(place.port, topology) {
        if server.ended().is_some() || Instant::now() > end || is_asked() {
            return Err(format!("the server does not listen: {}", server.stderr()));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(server)
}

/// Whether the server's port listens, in its namespace.
fn listens(port: u16, topology: &Topology) -> bool {
    let listeners = topology.at_server(|| Host::here().listeners());
    listeners.is_ok_and(|found| found.iter().any(|listener| listener.port == port))
}

#[cfg(test)]
mod tests;
