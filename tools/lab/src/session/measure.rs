//! One run of one case: a contender is started, driven, watched and stopped.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Session;
use super::count;
use super::figures::{self, Seen};
use super::folder::Folder;
use super::settings::{Changed, Settings};
use super::values::{self, Place};
use crate::contender::{self, Running, Start};
use crate::driver::{self, Order};
use crate::error::LabError;
use crate::files;
use crate::interrupt;
use crate::matrix::{self, Case};
use crate::placement::Placed;
use crate::probe::{Contention, Instructions, Snapshot, Watched, Workers};
use crate::process::{self, Process};
use crate::record::Run;
use crate::study::model::{Contender, Drive};
use crate::summary::ContenderRecord;
use crate::template::{self, Values};
use crate::topology::Topology;

/// The time that a driver may continue after its end.
const DRIVER_PATIENCE: Duration = Duration::from_secs(30);

/// The time that counted requests may take: strace makes each of a server's calls some ten times as
/// slow.
pub(super) const COUNTING_PATIENCE: Duration = Duration::from_secs(120);

/// The age at which a file is no longer new for any server: file systems keep times by 4 ms or
/// more, and servers look again for some seconds.
const SETTLED: Duration = Duration::from_secs(5);

/// The margin at each end of the measured time, since the driver's clock is not ours.
const MARGIN: Duration = Duration::from_millis(20);

/// The number of tries for a port, which another process may take before it is bound.
const PORT_TRIES: u32 = 3;

/// Where runs take place.
pub(super) struct Bench<'a> {
    pub(super) session: &'a Session,
    pub(super) topology: &'a Topology,
    /// Files that are the same for each run.
    constant: Folder,
}

/// What one run is made of.
pub(super) struct Setting<'a> {
    pub(super) case: &'a Case,
    pub(super) contender: &'a Contender,
    pub(super) values: Values,
    drive: &'a Drive,
    /// The words that the case's levels have for the driver.
    of_levels: Vec<String>,
    pub(super) folder: Folder,
    pub(super) placed: Placed,
}

/// A driver at work, near the end of its warm-up.
struct Begun {
    driver: Process,
    /// The start of the measurement.
    from: Instant,
    workers: Result<Vec<u64>, String>,
}

impl<'a> Bench<'a> {
    /// A place for runs, with the constant files of the study, which are no longer new when it
    /// returns.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn new(session: &'a Session, topology: &'a Topology) -> Result<Self, LabError> {
        let constant = Folder::make()?;
        let mut any = false;
        for (name, content) in &session.loaded.study.files {
            if content.is_constant() {
                files::write(
                    &constant.path().join(name.get_ref()),
                    content,
                    &Values::new(),
                )
                .map_err(|text| LabError::step("writing the files", text))?;
                any = true;
            }
        }
        if any {
            interrupt::wait_until(Instant::now() + SETTLED)?;
        }
        Ok(Self {
            session,
            topology,
            constant,
        })
    }

    /// Runs a case once; also returns how its contender was run.
    ///
    /// # Errors
    /// The failed step. All started processes are stopped.
    pub(super) fn run(
        &self,
        case: &Case,
        round: u32,
        position: u32,
    ) -> Result<(Run, ContenderRecord), LabError> {
        let _changed = Changed::make(&self.settings(case), self.topology)?;
        let mut tries = 1;
        let (setting, mut running) = loop {
            let setting = self.setting(case, round)?;
            match self.start(&setting) {
                Err(LabError::Contender { text, .. })
                    if text.contains("is in use") && tries < PORT_TRIES =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
                Ok(running) => break (setting, running),
            }
        };
        let seen = self.drive(&setting, &mut running)?;
        running.check()?;
        let study = &self.session.loaded.study;
        let calls = count::calls(study, &setting, &mut running, self.topology)?;
        let record = self.record(&setting);
        drop(running);
        let may_limit = study.run.driver_may_limit;
        let run = figures::run((round, position), &setting, seen, calls, may_limit);
        Ok((run, record))
    }

    fn settings(&self, case: &Case) -> Settings {
        let mut settings = Settings::default();
        for dimension in &self.session.dimensions {
            let name = case.level(&dimension.name);
            let level = dimension
                .levels
                .iter()
                .find(|level| Some(level.name.as_str()) == name);
            if let Some(level) = level {
                settings.add(&level.sysctl, &level.interface);
            }
        }
        settings
    }

    fn setting<'b>(&'b self, case: &'b Case, round: u32) -> Result<Setting<'b>, LabError> {
        let study = &self.session.loaded.study;
        let contender = study
            .contender(case)
            .ok_or_else(|| LabError::step("choosing the contender", case.label()))?;
        let (drive, of_levels) = matrix::drive(study, &self.session.dimensions, case)
            .ok_or_else(|| LabError::step("driving", "the study has no [drive]"))?;
        let folder = Folder::make()?;
        let placed = self.session.placed(case)?;
        let (port, origin_port) = contender::free_ports(self.topology)?;
        let turnpike = turnpike_host::program_beside("turnpike");
        let place = Place {
            folder: folder.path().display().to_string(),
            address: self.topology.address().to_owned(),
            port,
            origin_port,
            server_cpus: placed.server.clone(),
            driver_cpus: placed.driver.clone(),
            turnpike: turnpike.display().to_string(),
            round,
            seed: self.session.seed.wrapping_add(u64::from(round)),
        };
        let values = values::of_case(study, &self.session.dimensions, case, &place)
            .map_err(|error| LabError::contender(contender.name.get_ref(), error.to_string()))?;
        Ok(Setting {
            case,
            contender,
            values,
            drive,
            of_levels,
            folder,
            placed,
        })
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Running, LabError> {
        Running::start(&Start {
            study: &self.session.loaded.study,
            contender: setting.contender,
            values: &setting.values,
            folder: setting.folder.path(),
            constant: self.constant.path(),
            placed: &setting.placed,
            topology: self.topology,
        })
    }

    fn order<'b>(&self, setting: &'b Setting<'_>, seconds: f64) -> Order<'b> {
        Order {
            drive: setting.drive,
            values: &setting.values,
            of_levels: &setting.of_levels,
            seconds,
            warmup_s: self.session.warmup_s,
            folder: setting.folder.path(),
            is_shared: setting.placed.is_shared(),
        }
    }

    fn launch(&self, setting: &Setting<'_>, order: &Order<'_>) -> Result<Process, LabError> {
        let wrong = |text: String| LabError::Driver {
            step: setting.case.label(),
            text,
        };
        let words = driver::words(order).map_err(wrong)?;
        let words = self.topology.driver_words(words);
        let folder = setting.folder.path();
        Process::start(
            &words,
            &setting.placed.driver,
            folder,
            "driver",
            Signal::SIGINT,
        )
        .map_err(wrong)
    }

    fn drive(&self, setting: &Setting<'_>, running: &mut Running) -> Result<Seen, LabError> {
        let order = self.order(setting, self.session.seconds);
        let memory_before = figures::memory_bytes(&running.family());
        let Begun {
            mut driver,
            from,
            workers,
        } = self.warm_up(setting, &order, running)?;
        interrupt::wait_until(from + MARGIN)?;
        let watched = Watched {
            server: running.family(),
            network: running.pid(),
            driver: [process::descendants(driver.pid()), running.beside_driver()].concat(),
        };
        let contention = Contention::start();
        let instructions = Instructions::start(&watched.server);
        let before = Snapshot::take(&watched);
        // The end by the driver's clock, however long the steps before took.
        let end = from + Duration::from_secs_f64(self.session.seconds) - MARGIN * 2;
        while Instant::now() < end && driver.ended().is_none() {
            interrupt::wait_until(end.min(Instant::now() + MARGIN * 5))?;
            running.check()?;
        }
        let between = before.until(&Snapshot::take(&watched));
        let contentions = contention.figure(between.seconds);
        let executed = instructions.figure();
        drop((contention, instructions));
        let memory_bytes = figures::memory_bytes(&watched.server);
        await_end(setting, &mut driver, running, DRIVER_PATIENCE)?;
        let output = std::fs::read_to_string(setting.folder.path().join("driver.out"));
        let reading =
            driver::read(&order, &output.unwrap_or_default()).map_err(|text| LabError::Driver {
                step: setting.case.label(),
                text: format!("{text} {}", driver.stderr()),
            })?;
        Ok(Seen {
            reading,
            between,
            contentions,
            instructions: executed,
            memory_before,
            memory_bytes,
            workers,
        })
    }

    /// Starts the driver, and counts connections by worker in the second third of its warm-up: by
    /// then all workers run, and the counters are closed before the measurement. Returns the end of
    /// the warm-up. A driver without a warm-up runs once before.
    fn warm_up(
        &self,
        setting: &Setting<'_>,
        order: &Order<'_>,
        running: &mut Running,
    ) -> Result<Begun, LabError> {
        let warmup = Duration::from_secs_f64(self.session.warmup_s);
        let workers = setting.values.get("workers");
        let expected = workers.and_then(|count| count.parse().ok());
        if driver::drops_warmup(order.drive) {
            let driver = self.launch(setting, order)?;
            let launched = Instant::now();
            interrupt::wait_until(launched + warmup / 3)?;
            let workers = Workers::start(&running.accepting());
            interrupt::wait_until(launched + warmup * 2 / 3)?;
            return Ok(Begun {
                driver,
                from: launched + warmup,
                workers: workers.shares(expected),
            });
        }
        let workers = Workers::start(&running.accepting());
        if !warmup.is_zero() {
            let order = self.order(setting, self.session.warmup_s);
            let mut warming = self.launch(setting, &order)?;
            await_end(setting, &mut warming, running, DRIVER_PATIENCE)?;
        }
        let shares = workers.shares(expected);
        drop(workers);
        Ok(Begun {
            driver: self.launch(setting, order)?,
            from: Instant::now(),
            workers: shares,
        })
    }

    /// How the contender was run, without the places of this machine.
    fn record(&self, setting: &Setting<'_>) -> ContenderRecord {
        let study = &self.session.loaded.study;
        let plain = |text: &str| self.without_places(text, setting);
        let program = study.program(setting.contender.program.get_ref());
        let fill = |words: &[String], values: &Values| {
            let filled = words
                .iter()
                .filter_map(|word| template::fill(word, values).ok());
            filled.collect::<Vec<_>>()
        };
        let version = program.map(|program| version(&fill(&program.version, &setting.values)));
        let command = program.map(|program| fill(&program.command, &setting.values).join(" "));
        let words = driver::words(&self.order(setting, self.session.seconds)).ok();
        let mut configurations = Vec::new();
        if let (Some(name), Some(program)) = (&setting.contender.configuration, program) {
            let text = study
                .configuration(name.get_ref())
                .map(|text| text.get_ref().clone());
            let text = template::fill(&text.unwrap_or_default(), &setting.values);
            configurations.push((program.file.clone(), plain(&text.unwrap_or_default())));
        }
        if let Some(origin) = &setting.contender.origin
            && let Ok(values) = values::of_origin(&setting.values, origin)
        {
            let text = study
                .configuration(origin.configuration.get_ref())
                .map(|text| text.get_ref().clone());
            let text = template::fill(&text.unwrap_or_default(), &values);
            let name = format!("the {} behind it", origin.program.get_ref());
            configurations.push((name, plain(&text.unwrap_or_default())));
        }
        ContenderRecord {
            name: setting.contender.name.get_ref().clone(),
            version: version.unwrap_or_default(),
            command: plain(&command.unwrap_or_default()),
            driver: plain(&words.unwrap_or_default().join(" ")),
            configurations,
        }
    }

    fn without_places(&self, text: &str, setting: &Setting<'_>) -> String {
        let folder = setting.folder.path().display().to_string();
        let text = text.replace(&folder, "FOLDER");
        match setting.values.get("turnpike") {
            Some(program) if !program.is_empty() => text.replace(program.as_str(), "turnpike"),
            _ => text,
        }
    }
}

/// The first line that a command prints, with the version in it.
fn version(words: &[String]) -> String {
    let Some((program, arguments)) = words.split_first() else {
        return "not available: it prints no version".to_owned();
    };
    let path = process::find(program).unwrap_or_else(|| program.into());
    let output = Command::new(path).args(arguments).output();
    let output_bytes = output
        .map(|output| [output.stdout, output.stderr].concat())
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&output_bytes).into_owned();
    text.lines()
        .next()
        .unwrap_or("not available: it prints no version")
        .trim()
        .to_owned()
}

/// Waits for a driver to end by itself.
///
/// # Errors
/// It has failed, or goes on for longer than that; or the contender has died.
pub(super) fn await_end(
    setting: &Setting<'_>,
    driver: &mut Process,
    running: &mut Running,
    patience: Duration,
) -> Result<(), LabError> {
    let end = Instant::now() + patience;
    while driver.ended().is_none() {
        if Instant::now() >= end {
            return Err(LabError::Driver {
                step: setting.case.label(),
                text: format!("did not end {} s after its time", patience.as_secs()),
            });
        }
        running.check()?;
        interrupt::wait_until(Instant::now() + MARGIN)?;
    }
    match driver.ended() {
        Some(status) if !status.success() => Err(LabError::Driver {
            step: setting.case.label(),
            text: format!("ended with {status}: {}", driver.stderr()),
        }),
        _ => Ok(()),
    }
}
