//! A live server under a climb: its configuration and kernel settings at any levels, and a run at
//! each. It begins no run that could break the bound on time that is worse than the start, and what
//! it changes the journal has first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use turnpike_conf::text_of;
use turnpike_host::Host;
use turnpike_lab::bench::{is_asked, mean};

use super::found::Found;
use super::ledger::{Grade, Ledger};
use super::rewrite::{Original, QUEUE};
use crate::climb::clock::{Clock, Meter};
use crate::climb::driver::{Counters, Load, figures};
use crate::climb::field::pressed;
use crate::climb::judge::{ERROR_SHARE_MAX, Verdict};
use crate::climb::knobs::{Knob, Levels};
use crate::climb::search::{Bench, Failure, Run};
use crate::journal::{Begin, Entry, Journal, Kind, Reload};
use crate::steps::{self, Outcome};
use crate::system::System;
use crate::undo;

/// Runs of the server as it is, before the first step: what is worse is measured by their mean.
const START_RUNS: usize = 5;
/// A run whose rate is below this share of the start's is far worse: rates of single runs deviate
/// by 12 % on a machine with other work.
const FAR: f64 = 0.8;
/// Runs in a row of levels that stay which may fail or be slow, before everything is put back.
const FAILING_MAX: usize = 3;
/// How much longer than the longest run until now the next one may take: a reload is in it.
const RESERVE: f64 = 1.5;
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const AUTOCORKING: &str = "/proc/sys/net/ipv4/tcp_autocorking";
/// How long a call that waits for one socket polls, and one that waits for several.
const BUSY_POLL: [&str; 2] = [
    "/proc/sys/net/core/busy_poll",
    "/proc/sys/net/core/busy_read",
];
/// Microseconds of busy polling, as the kernel's documentation recommends.
const BUSY_POLL_US: &str = "50";

/// What a climb may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The share of its time that may be worse than the start.
    pub(super) worse_share: f64,
    /// How long it may take.
    pub(super) seconds: f64,
    /// The 99th percentile of latency is worse beyond so many times that of the start.
    pub(super) p99_factor: f64,
}

/// What is sent to the server, beside the requests of its clients.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) url: String,
    pub(super) connections: usize,
    /// The length of a run.
    pub(super) seconds: f64,
    /// Where the load generator's report goes.
    pub(super) folder: PathBuf,
}

/// A file of the configuration, or a kernel setting.
#[derive(Debug)]
struct Place {
    kind: Kind,
    /// The path without links.
    path: String,
    original: Vec<u8>,
    /// How it read when it was last written.
    now: Vec<u8>,
}

/// The server.
pub(super) struct Service {
    found: Found,
    system: System,
    journal: Journal,
    /// The climb's part of the journal, once it has begun.
    part: Option<usize>,
    original: Original,
    /// Files by their names in the configuration, and settings by their paths.
    places: BTreeMap<PathBuf, Place>,
    bounds: Bounds,
    traffic: Traffic,
    ledger: Ledger,
    begun: Instant,
    /// Runs at the start's levels.
    start: Vec<Run>,
    /// The levels that stay.
    safe: Levels,
    /// The levels in force; `None` while they are changed.
    present: Option<Levels>,
    failing: usize,
    longest_run_s: f64,
    /// Every run by its levels.
    pub(super) runs: Vec<(String, Run)>,
}

impl Service {
    /// Reads what there is; nothing is changed.
    ///
    /// # Errors
    /// In words.
    pub(super) fn new(
        found: Found,
        original: Original,
        journal: Journal,
        bounds: Bounds,
        traffic: Traffic,
    ) -> Result<Service, String> {
        let system = System::under("/");
        let places = places(&system, &original)?;
        Ok(Service {
            found,
            system,
            journal,
            part: None,
            original,
            places,
            bounds,
            traffic,
            ledger: Ledger::new(bounds.worse_share),
            begun: Instant::now(),
            start: Vec::new(),
            safe: Levels::default(),
            present: Some(Levels::default()),
            failing: 0,
            longest_run_s: 0.0,
            runs: Vec::new(),
        })
    }

    /// What is about to be done.
    pub(super) fn announcement(&self) -> String {
        let (found, traffic, bounds) = (&self.found, &self.traffic, &self.bounds);
        format!(
            "The server is process {} of {}, with {}.\nA load generator with {} connections asks \
             for {} in runs of {} s: this load comes on top of the clients' own.\nAt most {} % of \
             the time may be worse than now, and the climb ends after {} minutes.\n",
            found.process,
            found.program.display(),
            found.configuration.display(),
            traffic.connections,
            traffic.url,
            traffic.seconds,
            bounds.worse_share * 100.0,
            bounds.seconds / 60.0,
        )
    }

    /// The server's program, without its folders.
    pub(super) fn name(&self) -> String {
        let name = self.found.program.file_name().map(Path::new);
        let name = name.unwrap_or(&self.found.program).display();
        format!("{name}, live")
    }

    /// Begins: what happens from now on is put back if the climb does not come to its end.
    ///
    /// # Errors
    /// The server does not answer as it is, or the journal cannot be written.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let begin = Begin {
            reload: Some(Reload {
                pid_file: self.found.pid_file.display().to_string(),
                program: self.found.program.display().to_string(),
            }),
            ..steps::begin(&self.system, "climb")
        };
        self.journal.begin(begin).map_err(failed("the journal"))?;
        self.part = self.journal.parts.len().checked_sub(1);
        self.begun = Instant::now();
        for _ in 0..START_RUNS {
            self.watch()?;
            let begun = Instant::now();
            let run = self.measure()?;
            if error_share(&run) > ERROR_SHARE_MAX {
                let all = run.errors + run.answered;
                let url = &self.traffic.url;
                return Err(Failure::Climb(format!(
                    "{} of {all} requests for {url} fail before anything is changed",
                    run.errors
                )));
            }
            self.longest_run_s = self.longest_run_s.max(begun.elapsed().as_secs_f64());
            self.start.push(run);
        }
        Ok(())
    }

    /// Puts the levels in force that stay.
    ///
    /// # Errors
    /// They are not.
    pub(super) fn settle(&mut self, levels: Levels) -> Result<(), Failure> {
        self.safe = levels;
        self.back()?;
        if is_asked() {
            Err(Failure::Climb("interrupted".to_owned()))
        } else {
            Ok(())
        }
    }

    /// Closes the climb's part of the journal; without a change there is nothing to remember.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let ended = match (self.safe == Levels::default(), self.part) {
            (true, Some(part)) => self.journal.undone(part),
            _ => self.journal.end(),
        };
        ended.map_err(|error| format!("the journal: {error}"))
    }

    /// Puts everything back that was changed; says what became of it, and whether all of it is as
    /// it was.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn put_back(&mut self) -> Result<(String, bool), String> {
        let Some(part) = self.part else {
            return Ok((String::new(), true));
        };
        let lines = steps::undo(&self.system, &mut self.journal, part);
        let lines = lines.map_err(|error| format!("the journal: {error}"))?;
        let is_whole = !lines.iter().any(|(_, outcome)| outcome.is_left());
        let changed = lines
            .into_iter()
            .filter(|(_, outcome)| *outcome != Outcome::Restored);
        Ok((undo::text(&changed.collect::<Vec<_>>()), is_whole))
    }

    /// The changes that these levels are, a line for each.
    pub(super) fn lines(&self, levels: Levels) -> Vec<String> {
        let mut lines = self.original.lines(levels);
        let settings = self.changed_settings(levels).into_iter();
        lines.extend(settings.map(|(path, value)| format!("{} = {value}", path.replace('/', "."))));
        lines
    }

    /// The kernel settings that differ with these levels, by their paths below `/proc/sys`.
    pub(super) fn changed_settings(&self, levels: Levels) -> Vec<(String, String)> {
        let settings = self.wanted(levels).into_iter();
        let changed = settings.filter_map(|(place, bytes)| {
            let place = self.places.get(&place)?;
            let is_changed = place.kind == Kind::Kernel && bytes != place.original;
            let value = String::from_utf8_lossy(&bytes).trim().to_owned();
            let path = place.path.strip_prefix("/proc/sys/")?;
            is_changed.then(|| (path.to_owned(), value))
        });
        changed.collect()
    }

    /// How much of the time was worse, and what has changed.
    pub(super) fn ending(&self, levels: Levels) -> String {
        let (worse_s, all_s) = (self.ledger.worse_s(), self.elapsed_s());
        let share = worse_s / all_s.max(1.0) * 100.0;
        let time =
            format!("\n{worse_s:.1} of {all_s:.1} s ({share:.1} %) were worse than the start.\n");
        let lines = self.lines(levels);
        if lines.is_empty() {
            time + "The server runs as before: no step was kept.\n"
        } else {
            format!(
                "{time}The server runs with these changes; `turnpike tune revert` undoes \
             them:\n\n{}\n",
                lines.join("\n")
            )
        }
    }

    fn elapsed_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Ends the climb when something else is more important.
    fn watch(&self) -> Result<(), Failure> {
        if is_asked() {
            return Err(Failure::Climb("interrupted".to_owned()));
        }
        if let Some(why) = pressed(&Host::here()) {
            return Err(Failure::Climb(why));
        }
        self.found.check().map_err(Failure::Climb)
    }

    fn time_is_over(&self) -> String {
        format!("its {} minutes are over", self.bounds.seconds / 60.0)
    }

    /// Waits at the levels that stay until a run may be worse than the start.
    fn earn(&mut self) -> Result<(), Failure> {
        let run_s = self.longest_run_s * RESERVE;
        let wait_s = self.ledger.wait_s(self.elapsed_s(), run_s);
        if wait_s <= 0.0 {
            return Ok(());
        }
        self.back()?;
        if self.elapsed_s() + wait_s + run_s > self.bounds.seconds {
            let percent = self.bounds.worse_share * 100.0;
            return Err(Failure::Over(format!(
                "{percent} % of the time allow no further run that may be worse than the start \
                 before {}",
                self.time_is_over()
            )));
        }
        let end = Instant::now() + Duration::from_secs_f64(wait_s);
        while Instant::now() < end {
            self.watch()?;
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Goes back to the levels that stay.
    fn back(&mut self) -> Result<(), Failure> {
        self.put(self.safe)
            .map_err(|failure| Failure::Climb(failure.text()))
    }

    /// Puts levels in force.
    fn put(&mut self, levels: Levels) -> Result<(), Failure> {
        if self.present == Some(levels) {
            return Ok(());
        }
        self.present = None;
        let mut has_changed = false;
        // Settings first: a socket takes the longest queue that is allowed when it listens anew.
        for kind in [Kind::Kernel, Kind::Disk] {
            for (name, bytes) in self.wanted(levels) {
                has_changed |= self.write(kind, &name, &bytes)?;
            }
        }
        if has_changed {
            self.found.test().map_err(Failure::Levels)?;
            self.found.reload().map_err(Failure::Levels)?;
        }
        self.present = Some(levels);
        Ok(())
    }

    /// The bytes of every place with these levels.
    fn wanted(&self, levels: Levels) -> BTreeMap<PathBuf, Vec<u8>> {
        let places = self.places.iter();
        let originals = places.map(|(name, place)| (name.clone(), place.original.clone()));
        let mut wanted: BTreeMap<PathBuf, Vec<u8>> = originals.collect();
        wanted.extend(self.original.with(levels));
        let mut set = |path: &str, value: &str| {
            if let Some(bytes) = wanted.get_mut(Path::new(path)) {
                *bytes = value.as_bytes().to_vec();
            }
        };
        if levels.level(Knob::Somaxconn) == 1 && self.number(SOMAXCONN) < Some(QUEUE) {
            set(SOMAXCONN, &QUEUE.to_string());
        }
        if levels.level(Knob::Autocorking) == 1 && self.number(AUTOCORKING) != Some(0) {
            set(AUTOCORKING, "0");
        }
        if levels.level(Knob::BusyPoll) == 2 {
            BUSY_POLL.iter().for_each(|path| set(path, BUSY_POLL_US));
        }
        wanted
    }

    /// A setting's number before the climb.
    fn number(&self, path: &str) -> Option<u64> {
        let place = self.places.get(Path::new(path))?;
        String::from_utf8_lossy(&place.original).trim().parse().ok()
    }

    /// Writes a place of this kind that reads otherwise; whether the server has to be told.
    fn write(&mut self, kind: Kind, name: &Path, bytes: &[u8]) -> Result<bool, Failure> {
        let Some(place) = self.places.get_mut(name).filter(|place| place.kind == kind) else {
            return Ok(false);
        };
        let path = place.path.clone();
        let wrong = failed(&path);
        let is_so = |now: &[u8]| now == bytes || (kind == Kind::Kernel && is_same_word(now, bytes));
        if is_so(&place.now) {
            return Ok(false);
        }
        let current = self.system.read(&path).map_err(&wrong)?.unwrap_or_default();
        if current != place.now {
            let why = format!("{path}: somebody else has changed it");
            return Err(Failure::Climb(why));
        }
        let entry = Entry::new(kind, &path, Some(&place.original), &text_of(bytes));
        steps::change(&self.system, &mut self.journal, &entry).map_err(&wrong)?;
        place.now = self.system.read(&path).map_err(&wrong)?.unwrap_or_default();
        if is_so(&place.now) {
            Ok(kind == Kind::Disk)
        } else {
            Err(Failure::Levels(format!("{path} does not take the value")))
        }
    }

    /// A run of what is in force.
    fn measure(&mut self) -> Result<Run, Failure> {
        let cpus = Host::here().own_cpus();
        let load = Load {
            urls: vec![self.traffic.url.clone()],
            connections: self.traffic.connections,
            seconds: self.traffic.seconds,
            folder: &self.traffic.folder,
            cpus: &cpus,
        };
        let before = Counters::here();
        let (clock, meter) = (Clock::start(), Meter::of(self.found.process));
        let report = load.drive(|words| words).map_err(Failure::Climb)?;
        let server_us = meter.spent_us();
        let spent = clock.spent_beside(server_us);
        let counters = Counters::here().since(before);
        self.found.check().map_err(Failure::Climb)?;
        let run = figures(&report, counters, spent, spent, server_us);
        match run.answered {
            0 => Err(Failure::Climb(format!(
                "{} does not answer",
                self.traffic.url
            ))),
            _ => Ok(run),
        }
    }

    /// A run beside those of the start.
    fn grade(&self, run: &Run) -> Grade {
        let rates: Vec<f64> = self.start.iter().map(|run| run.connections_per_s).collect();
        let rate = mean(&rates).unwrap_or(0.0);
        if run.connections_per_s < rate * FAR || self.is_failing(run) {
            return Grade::FarWorse;
        }
        if run.connections_per_s < rate {
            Grade::Worse
        } else {
            Grade::NotWorse
        }
    }

    /// Whether requests fail, or are slow beyond the bound.
    fn is_failing(&self, run: &Run) -> bool {
        let latencies: Vec<f64> = self.start.iter().map(|run| run.p99_us).collect();
        let p99_us = mean(&latencies).unwrap_or(0.0);
        error_share(run) > ERROR_SHARE_MAX
            || (p99_us > 0.0 && run.p99_us > p99_us * self.bounds.p99_factor)
    }

    /// Takes a run of levels that stay.
    fn ran_safe(&mut self, run: &Run) -> Result<(), Failure> {
        self.failing = if self.is_failing(run) {
            self.failing + 1
        } else {
            0
        };
        if self.failing >= FAILING_MAX {
            Err(Failure::Climb(format!(
                "requests fail, or take too long, in {FAILING_MAX} runs in a row, though no step \
             is tried"
            )))
        } else {
            Ok(())
        }
    }

    /// Takes a run of a step that is tried.
    fn ran_trial(&mut self, run: &Run, seconds: f64) -> Result<(), Failure> {
        self.ledger.ran(seconds, self.grade(run));
        let why = if error_share(run) > ERROR_SHARE_MAX {
            format!("{} of its requests failed", run.errors)
        } else if self.ledger.is_given_up() {
            "given up, since most of its runs were far below the start".to_owned()
        } else {
            return Ok(());
        };
        self.back()?;
        Err(Failure::Worse(why))
    }
}

impl Bench for Service {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        self.watch()?;
        // The first run is the climb's start, which has to be known for it to have an end.
        if self.elapsed_s() > self.bounds.seconds && !self.runs.is_empty() {
            return Err(Failure::Over(self.time_is_over()));
        }
        let is_trial = levels != self.safe;
        if is_trial {
            self.earn()?;
        }
        let begun = Instant::now();
        let result = self.put(levels).and_then(|()| self.measure());
        let seconds = begun.elapsed().as_secs_f64();
        self.longest_run_s = self.longest_run_s.max(seconds);
        let run = match result {
            Err(Failure::Levels(why)) if is_trial => {
                self.ledger.ran(seconds, Grade::FarWorse);
                self.back()?;
                return Err(Failure::Levels(why));
            }
            result => result?,
        };
        self.runs.push((levels.key(), run.clone()));
        if is_trial {
            self.ran_trial(&run, seconds)?;
        } else {
            self.ran_safe(&run)?;
        }
        Ok(run)
    }

    fn left_out(&self, now: Levels, levels: Levels) -> Option<String> {
        let mut moved = Knob::ALL
            .into_iter()
            .filter(|knob| levels.level(*knob) != now.level(*knob));
        if let Some(why) = moved.find_map(|knob| unfit(knob, levels.level(knob))) {
            return Some(why.to_owned());
        }
        let polls = levels.level(Knob::BusyPoll) > now.level(Knob::BusyPoll);
        if polls
            && BUSY_POLL
                .iter()
                .any(|path| !self.places.contains_key(Path::new(path)))
        {
            let text =
                "this network namespace has no net.core.busy_poll: the machine's first has it";
            return Some(text.to_owned());
        }
        let (now, levels) = (self.wanted(now), self.wanted(levels));
        if now == levels {
            return Some("it is so already, or the configuration has no place for it".to_owned());
        }
        let differs = |path: &str| now.get(Path::new(path)) != levels.get(Path::new(path));
        let files = self
            .places
            .iter()
            .filter(|(_, place)| place.kind == Kind::Disk);
        let has_file = files
            .map(|(name, _)| name)
            .any(|name| now.get(name) != levels.get(name));
        (differs(SOMAXCONN) && !has_file).then(|| {
            "the backlog of each listen is as long already, and a new somaxconn counts when the \
             server is started anew"
                .to_owned()
        })
    }

    fn judged(&mut self, verdict: Verdict, now: Levels) {
        self.ledger.judged(verdict);
        self.safe = now;
    }
}

/// Why a level is not for a server with clients.
fn unfit(knob: Knob, level: usize) -> Option<&'static str> {
    match (knob, level) {
        (_, 0) => None,
        (Knob::Workers, 1) => Some("a server with clients keeps its CPUs"),
        (Knob::AccessLog, 2) => Some("the lines of the log would be lost"),
        (Knob::AcceptMutex, 2) => {
            Some("to undo it, sockets are closed with the connections that wait in them")
        }
        (Knob::SynCookies, _) => {
            Some("without cookies, a flood of SYNs would take the server from its clients")
        }
        (Knob::BusyPoll, 1) => {
            Some("the next reload would forget it: workers have new epoll instances")
        }
        (Knob::Addresses, _) => {
            Some("to undo it, sockets are closed with the connections that wait in them")
        }
        (Knob::PacketSteering | Knob::Napi | Knob::Placement, _) => {
            Some("on a live server a step changes what a reload or a kernel setting undoes")
        }
        _ => None,
    }
}

/// The places that steps may change, as they are now.
fn places(system: &System, original: &Original) -> Result<BTreeMap<PathBuf, Place>, String> {
    let mut places: BTreeMap<PathBuf, Place> = BTreeMap::new();
    for path in [SOMAXCONN, AUTOCORKING].into_iter().chain(BUSY_POLL) {
        let bytes = system.read(path);
        // A kernel without the setting has no such step.
        if let Some(bytes) = bytes.map_err(|error| format!("{path}: {error}"))? {
            let place = Place::new(Kind::Kernel, path, bytes);
            places.insert(PathBuf::from(path), place);
        }
    }
    for (name, bytes) in original.texts() {
        let wrong = |error: std::io::Error| format!("{}: {error}", name.display());
        let path = name.canonicalize().map_err(wrong)?.display().to_string();
        if places.values().any(|place| place.path == path) {
            return Err(format!("{path} is included under two names"));
        }
        places.insert(name, Place::new(Kind::Disk, &path, bytes));
    }
    Ok(places)
}

impl Place {
    fn new(kind: Kind, path: &str, bytes: Vec<u8>) -> Place {
        Place {
            kind,
            path: path.to_owned(),
            now: bytes.clone(),
            original: bytes,
        }
    }
}

/// Whether the kernel's text of a value is this value.
fn is_same_word(now: &[u8], wanted: &[u8]) -> bool {
    now.trim_ascii() == wanted.trim_ascii()
}

fn error_share(run: &Run) -> f64 {
    run.errors as f64 / (run.errors + run.answered).max(1) as f64
}

fn failed(path: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::Climb(format!("{path}: {error}"))
}

#[cfg(test)]
mod tests;
