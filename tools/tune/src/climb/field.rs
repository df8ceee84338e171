//! Real runs: a server and a load generator in two network namespaces of our own, joined by a veth
//! pair. The machine's own network and settings are never touched; what a run has set goes with
//! the namespaces. Servers and load generators die with this process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_host::Host;
use turnpike_lab::bench::{Topology, is_asked, poll_busily};

use super::clock::{Clock, Meter};
use super::driver::{Counters, Load, figures};
use super::knobs::{Knob, Levels, Place};
use super::search::{Bench, Failure, Run};
use super::server::{Running, Server};
use crate::facts;
use crate::placement::{Placement, Split, split};

/// The server has its namespace to itself, so any port is free.
const PORT: u16 = 8080;
/// The server's addresses: study S3 has 24 for 24 workers, and here are few CPUs.
const ADDRESSES: u8 = 4;
/// What the kernel's documentation recommends for busy polling.
const BUSY_POLL_US: u32 = 50;
/// How long workers may take until they wait for events.
const EPOLL_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Why a climb ends that a person has ended: what was measured until then is kept.
const INTERRUPTED: &str = "it was interrupted";

/// Which server is driven, and how.
#[derive(Clone, Debug)]
pub(crate) struct FieldSettings {
    pub(crate) server: Server,
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
}

/// The bench.
pub(crate) struct Field {
    wish: FieldSettings,
    topology: Topology,
    folder: PathBuf,
    cpus: Vec<usize>,
    addresses: Vec<String>,
    /// The CPUs by [`Placement::ALL`]; or why there is no such split here.
    splits: [Result<Split, String>; 3],
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
    pub(crate) fn new(
        wish: FieldSettings,
        folder: &Path,
        cpus: Vec<usize>,
    ) -> Result<Field, String> {
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
            addresses: topology.addresses(ADDRESSES)?,
            topology,
            folder: folder.to_path_buf(),
            interface: Levels::default().interface(&cpus, None),
            splits: splits(&cpus),
            cpus,
            runs: Vec::new(),
        })
    }

    /// Changes how the server's interface receives, where these levels differ from what is.
    fn receive(&mut self, levels: Levels, split: Option<&Split>) -> Result<(), String> {
        let start = Levels::default().interface(&self.cpus, None);
        let wanted = levels.interface(&self.cpus, split);
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
        if levels.level(Knob::BusyPoll) == 2 {
            let text =
                "net.core.busy_poll belongs to the whole machine, which a climb leaves alone";
            return Err(text.to_owned());
        }
        let split = match levels.level(Knob::Placement) {
            0 => None,
            level => Some(self.splits[level - 1].clone()?),
        };
        self.receive(levels, split.as_ref())?;
        for (path, value) in levels.settings() {
            let changed = self.topology.change(path, value);
            changed.map_err(|error| format!("{path}: {error}"))?;
        }
        let folder = self.folder.display().to_string();
        let place = place(&folder, &self.addresses, &self.cpus, split.as_ref());
        let running = self.wish.server.start(levels, &place, &self.topology)?;
        if levels.level(Knob::BusyPoll) == 1 {
            busy_polling(levels.workers(&place).len())?;
        }
        Ok(running)
    }

    /// The counters of the server's namespace.
    fn counters(&self) -> Counters {
        self.topology.at_server(Counters::here).unwrap_or_default()
    }

    fn drive(&self) -> Result<Value, String> {
        let wish = &self.wish;
        // A study's server listens on one address, and has no level with more.
        let count = match wish.server {
            Server::Program(_) => self.addresses.len(),
            Server::Study(..) => 1,
        };
        let addresses = self.addresses.iter().take(count);
        let urls = addresses.map(|address| format!("http://{address}:{PORT}/index.html"));
        let load = Load {
            urls: urls.collect(),
            connections: wish.connections,
            seconds: wish.seconds,
            folder: &self.folder,
            cpus: &[client(&self.cpus)],
        };
        load.drive(|words| self.topology.driver_words(words))
    }
}

impl Bench for Field {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        if is_asked() {
            return Err(Failure::Over(INTERRUPTED.to_owned()));
        }
        if let Some(why) = pressed(&Host::here()) {
            return Err(Failure::Climb(why));
        }
        // Ctrl-C during a run is no fault of the levels.
        let failure = |why: String| {
            if is_asked() {
                Failure::Over(INTERRUPTED.to_owned())
            } else {
                Failure::Levels(why)
            }
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
        let run = figures(&report, counters, driven, spent, server_us);
        self.runs.push((levels.key(), run.clone()));
        Ok(run)
    }
}

/// Has the workers' epoll instances poll busily, once all workers have one.
fn busy_polling(workers: usize) -> Result<(), String> {
    let end = Instant::now() + EPOLL_PATIENCE;
    loop {
        let family = Host::here().family(std::process::id());
        // The first one is this process.
        let servers = family.get(1..).unwrap_or_default();
        if poll_busily(servers, BUSY_POLL_US)? >= workers {
            return Ok(());
        }
        if Instant::now() > end || is_asked() {
            return Err("the server's workers do not wait by epoll".to_owned());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// How these CPUs can be split. A veth pair is near to all of them.
fn splits(cpus: &[usize]) -> [Result<Split, String>; 3] {
    let mut facts = facts::read(&Host::here(), Path::new("/"), 0.0);
    facts.cgroup.cpus = Some(cpus.to_vec());
    Placement::ALL.map(|placement| split(&facts, placement, None))
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
    let split = match levels.level(Knob::Placement) {
        0 => None,
        level => splits(cpus).into_iter().nth(level - 1).transpose()?,
    };
    server.configuration(levels, &place(".", &[], cpus, split.as_ref()))
}

fn place<'a>(
    folder: &'a str,
    addresses: &'a [String],
    cpus: &'a [usize],
    split: Option<&'a Split>,
) -> Place<'a> {
    Place {
        folder,
        addresses,
        port: PORT,
        client: client(cpus),
        cpus,
        split,
    }
}

/// Why the machine has no memory for more runs.
pub(super) fn pressed(host: &Host) -> Option<String> {
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
