//! One run of one case: a contender is started, driven, watched and stopped.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Session;
use super::folder::Folder;
use super::settings::{Changed, Settings};
use super::values::{self, Place};
use crate::contender::{self, Running, Start};
use crate::driver::{self, Order, Reading};
use crate::error::LabError;
use crate::files;
use crate::interrupt;
use crate::matrix::Case;
use crate::metric::Figure;
use crate::noise;
use crate::placement::Placed;
use crate::probe::{Between, Contention, Snapshot, Watched, Workers};
use crate::process::{self, Process};
use crate::record::Run;
use crate::statistics;
use crate::study::model::Contender;
use crate::summary::ContenderRecord;
use crate::template::{self, Values};
use crate::topology::Topology;

/// The time that a driver may continue after its end.
const DRIVER_PATIENCE: Duration = Duration::from_secs(30);

/// The age at which a file is no longer new for any server: file systems keep times by 4 ms or
/// more, and servers look again for some seconds.
const SETTLED: Duration = Duration::from_secs(5);

/// The margin at each end of the measured time, since the driver's clock is not ours.
const MARGIN: Duration = Duration::from_millis(20);

/// The number of tries for a port, which another process may take before it is bound.
const PORT_TRIES: u32 = 3;

/// Another driver than ours that used its thread for this share of the time was the limit.
const DRIVER_SHARE_MAX: f64 = 0.95;

/// Where runs take place.
pub(super) struct Bench<'a> {
    pub(super) session: &'a Session,
    pub(super) topology: &'a Topology,
    /// Files that are the same for each run.
    constant: Folder,
}

/// What one run is made of.
struct Setting<'a> {
    case: &'a Case,
    contender: &'a Contender,
    values: Values,
    folder: Folder,
    placed: Placed,
}

/// The observations during the load.
struct Seen {
    reading: Reading,
    between: Between,
    contentions: Figure,
    workers: Result<Vec<u64>, String>,
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
        let record = self.record(&setting);
        drop(running);
        let may_limit = self.session.loaded.study.run.driver_may_limit;
        let run = finish(case, (round, position), &setting, seen, may_limit);
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
        let folder = Folder::make()?;
        let placed = self.session.placed(case)?;
        let (port, origin_port) = contender::free_ports(self.topology)?;
        let turnpike = std::env::current_exe()
            .map_err(|error| LabError::step("finding this program", error))?;
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

    fn order<'b>(&'b self, setting: &'b Setting<'_>, seconds: f64) -> Result<Order<'b>, LabError> {
        let study = &self.session.loaded.study;
        let drive = study
            .drive
            .as_ref()
            .ok_or_else(|| LabError::step("driving", "the study has no [drive]"))?;
        Ok(Order {
            drive: drive.get_ref(),
            values: &setting.values,
            seconds,
            warmup_s: self.session.warmup_s,
            folder: setting.folder.path(),
            is_shared: setting.placed.is_shared(),
        })
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
        let order = self.order(setting, self.session.seconds)?;
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
        let before = Snapshot::take(&watched);
        // The end by the driver's clock, however long the steps before took.
        let end = from + Duration::from_secs_f64(self.session.seconds) - MARGIN * 2;
        while Instant::now() < end && driver.ended().is_none() {
            interrupt::wait_until(end.min(Instant::now() + MARGIN * 5))?;
            running.check()?;
        }
        let between = before.until(&Snapshot::take(&watched));
        let contentions = contention.figure(between.seconds);
        drop(contention);
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
            let order = self.order(setting, self.session.warmup_s)?;
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
        let order = self.order(setting, self.session.seconds).ok();
        let words = order.and_then(|order| driver::words(&order).ok());
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

fn await_end(
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

/// The record of a run. `may_limit`: whether the driver as the limit is no reason for a mark.
fn finish(
    case: &Case,
    (round, position): (u32, u32),
    setting: &Setting<'_>,
    seen: Seen,
    may_limit: bool,
) -> Run {
    let Seen {
        reading,
        between,
        contentions,
        workers,
    } = seen;
    let mut figures = between.figures.clone();
    figures.insert("contentions_per_s".to_owned(), contentions);
    figures.extend(reading.figures);
    let rate = figures.get("requests_per_s").and_then(Figure::value);
    let requests = rate.unwrap_or_default() * between.seconds;
    for (name, ns) in [
        ("server_cpu_us", between.server_ns),
        ("driver_cpu_us", between.driver_ns),
    ] {
        // A driver that reports it, as scripted ones do, is more exact.
        let figure = match requests > 0.0 {
            true => Figure::Value(ns / 1e3 / requests),
            false => Figure::Missing("no request was answered".to_owned()),
        };
        figures.entry(name.to_owned()).or_insert(figure);
    }
    let fairness = match &workers {
        Ok(counts) if counts.len() > 1 => statistics::fairness(counts).map_or_else(
            || Figure::Missing("no connections".to_owned()),
            Figure::Value,
        ),
        Ok(_) => Figure::Missing("there is one worker".to_owned()),
        Err(why) => Figure::Missing(why.clone()),
    };
    figures.entry("fairness".to_owned()).or_insert(fairness);
    let limited = reading.limited.unwrap_or_else(|| {
        let share = between.driver_ns / 1e9 / between.seconds;
        let cpus = setting.placed.driver.len() as f64;
        let own = !setting.placed.is_shared() && share > DRIVER_SHARE_MAX * cpus;
        own.then(|| format!("the driver used {:.0} % of its CPUs", share / cpus * 100.0))
    });
    let mut run = Run {
        round,
        position,
        case: case.clone(),
        marks: Vec::new(),
        figures,
        workers,
        cores: between.cores,
        distribution: reading.distribution,
    };
    let limited = limited.filter(|_| !may_limit);
    run.marks = noise::marks(&run, limited.as_deref(), requests);
    run
}
