//! A study's run from start to end: what is to be done, each run in its turn, each kept at once,
//! and the report at the end or at Ctrl-C.

mod count;
mod figures;
mod folder;
mod measure;
mod progress;
mod results;
mod settings;
pub(crate) mod values;

pub(crate) use results::{fresh_folder, replace, write_summary};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::environment;
use crate::error::LabError;
use crate::interrupt;
use crate::matrix::{self, Case, Choice, Dimension};
use crate::placement;
use crate::process;
use crate::record::{self, Run};
use crate::report::{self, counted};
use crate::study::{self, Loaded};
use crate::summary::{ContenderRecord, Header, SCHEMA};
use crate::topology::Topology;

use measure::Bench;
use progress::Progress;
use settings::{Changed, Settings};

/// What the command line asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionOptions {
    pub(crate) study: String,
    pub(crate) quick: bool,
    /// `DIMENSION=LEVEL[,LEVEL]`, or a level of any dimension.
    pub(crate) only: Vec<String>,
    pub(crate) out: PathBuf,
    pub(crate) resume: bool,
    pub(crate) repetitions: Option<u32>,
    pub(crate) seconds: Option<f64>,
    pub(crate) topology: Option<String>,
    pub(crate) seed: Option<u64>,
    /// Show no progress.
    pub(crate) quiet: bool,
}

/// A study on this machine, with what is to be run of it.
pub(crate) struct Session {
    loaded: Loaded,
    dimensions: Vec<Dimension>,
    cases: Vec<Case>,
    repetitions: u32,
    seconds: f64,
    warmup_s: f64,
    seed: u64,
    only: BTreeMap<String, Vec<String>>,
    notes: Vec<String>,
}

/// Runs a study and writes its results; returns their folder.
///
/// # Errors
/// The first step that failed; the runs before it are kept.
pub(crate) fn run(wish: &SessionOptions) -> Result<PathBuf, LabError> {
    turnpike_host::raise_file_limit();
    let loaded = study::load(&wish.study)?;
    if loaded.study.contender.is_empty() {
        let text = "this study is data and has nothing to run; `turnpike lab show` prints it";
        return Err(loaded.source.mistake(&loaded.study.name, text));
    }
    let session = Session::plan(loaded, wish)?;
    let wished = wish.topology.as_deref();
    let (topology, why) =
        Topology::make(wished.unwrap_or(session.loaded.study.run.topology.get_ref()));
    let settings = Settings::of_sysctl(&session.loaded.study.sysctl);
    let (changed, unset) = Changed::where_possible(&settings, &topology);
    let mut header = session.header(wish, &topology);
    for note in why.into_iter().chain(unset) {
        eprintln!("turnpike lab: {note}");
        header.notes.push(note);
    }
    let folder = results::folder(&header, wish)?;
    let done = results::open(&folder, &mut header, &session, wish.resume)?;
    println!("{}", session.announce(&folder, done.len()));
    let result = session.carry_out(&folder, &topology, &mut header, &done, wish.quiet);
    drop(changed);
    drop(topology);
    let runs = record::read(&folder.join(results::RAW))?;
    let reported = report::write(&folder, header, &session.loaded, &runs);
    if let Err(error) = result {
        let planned = session.cases.len() * session.repetitions as usize;
        eprintln!(
            "turnpike lab: {} of {planned} runs are kept in {}; continue with --resume",
            runs.len(),
            folder.display()
        );
        // The error that stopped the run is returned, and not one of the report.
        return Err(error);
    }
    print!("{}", reported?);
    Ok(folder)
}

impl Session {
    fn plan(loaded: Loaded, wish: &SessionOptions) -> Result<Session, LabError> {
        let cpus = placement::allowed().len();
        let study = &loaded.study;
        let dimensions = matrix::dimensions(study, cpus);
        let only = only(&dimensions, &wish.only)?;
        let choice = Choice {
            quick: wish.quick,
            only: only.clone(),
        };
        let mut cases = matrix::cases(study, &dimensions, &choice);
        let notes = leave_out(&loaded, &mut cases);
        if cases.is_empty() {
            return Err(loaded.source.mistake(&study.name, "no case is left to run"));
        }
        let table = &study.run;
        let (repetitions, seconds, warmup_s) = if wish.quick {
            (
                table.quick.repetitions,
                table.quick.seconds,
                table.quick.warmup_s,
            )
        } else {
            (table.repetitions, table.seconds, table.warmup_s)
        };
        let session = Session {
            repetitions: wish.repetitions.unwrap_or(repetitions).max(1),
            seconds: wish.seconds.unwrap_or(seconds).max(0.1),
            warmup_s,
            seed: wish.seed.unwrap_or(table.seed),
            dimensions,
            cases,
            only,
            notes,
            loaded,
        };
        // Every placement is tried before anything is started.
        for case in &session.cases {
            session.placed(case)?;
        }
        Ok(session)
    }

    /// The CPUs of a case.
    fn placed(&self, case: &Case) -> Result<placement::Placed, LabError> {
        let study = &self.loaded.study;
        let Some(wish) = &study.placement else {
            let text = "the study has no placement";
            return Err(self.loaded.source.mistake(&study.name, text));
        };
        let lacking = |text: String| self.loaded.source.lacking(wish, text);
        let values = values::of_case(study, &self.dimensions, case, &values::Place::tried())
            .map_err(|error| lacking(error.to_string()))?;
        let fill = |text: &str| {
            crate::template::fill(text, &values).map_err(|error| lacking(error.to_string()))
        };
        let server = fill(&wish.get_ref().server)?;
        let driver = fill(&wish.get_ref().driver)?;
        placement::place(&server, &driver, &placement::allowed()).map_err(lacking)
    }

    fn header(&self, wish: &SessionOptions, topology: &Topology) -> Header {
        let study = &self.loaded.study;
        let is_shared = |case: &Case| self.placed(case).is_ok_and(|placed| placed.is_shared());
        Header {
            schema: SCHEMA.to_owned(),
            study: study.name.get_ref().clone(),
            study_file: self.loaded.source.file.clone(),
            study_text: self.loaded.source.text.clone(),
            date: jiff::Zoned::now().strftime("%Y-%m-%d").to_string(),
            machine: environment::slug(),
            quick: wish.quick,
            repetitions: self.repetitions,
            seconds: self.seconds,
            warmup_s: self.warmup_s,
            seed: self.seed,
            only: self.only.clone(),
            topology: topology.name().to_owned(),
            cpus: placement::allowed().len(),
            shared_cpus: self.cases.iter().any(is_shared),
            notes: self.notes.clone(),
            environment: environment::sections(topology),
            contenders: Vec::new(),
        }
    }

    fn announce(&self, folder: &std::path::Path, done: usize) -> String {
        let runs = self.cases.len() * self.repetitions as usize;
        let mut text = format!(
            "{}: {}, {} of {} s ({}",
            self.loaded.study.name.get_ref(),
            counted(self.cases.len(), "case"),
            counted(self.repetitions as usize, "repetition"),
            self.seconds,
            counted(runs, "run")
        );
        if done > 0 {
            text.push_str(&format!(", {done} of them done"));
        }
        text.push_str(&format!(") into {}", folder.display()));
        for note in &self.notes {
            text.push_str(&format!("\nnote: {note}"));
        }
        text
    }

    fn carry_out(
        &self,
        folder: &std::path::Path,
        topology: &Topology,
        header: &mut Header,
        done: &BTreeSet<(u32, Case)>,
        quiet: bool,
    ) -> Result<(), LabError> {
        let total = self.cases.len() * self.repetitions as usize;
        let mut progress = Progress::new(total, total - done.len(), quiet);
        let bench = Bench::new(self, topology)?;
        let raw = folder.join(results::RAW);
        for round in 0..self.repetitions {
            let order = matrix::order(&self.cases, round, self.seed);
            for (position, index) in order.into_iter().enumerate() {
                let case = &self.cases[index];
                if done.contains(&(round, case.clone())) {
                    continue;
                }
                interrupt::check()?;
                progress.begin(&case.label(), round);
                // What Ctrl-C cuts short fails in words of its own, which are not the cause.
                let (run, contender) = bench
                    .run(case, round, position as u32)
                    .or_else(|error| interrupt::check().and(Err(error)))?;
                record::append(&raw, &run.line())?;
                keep(header, contender, folder)?;
                progress.end();
            }
        }
        Ok(())
    }
}

/// Notes how a contender was run, the first time that it was.
fn keep(
    header: &mut Header,
    contender: ContenderRecord,
    folder: &std::path::Path,
) -> Result<(), LabError> {
    if header
        .contenders
        .iter()
        .any(|known| known.name == contender.name)
    {
        return Ok(());
    }
    header.contenders.push(contender);
    results::write_header(folder, header)
}

/// `--only` by dimension.
fn only(
    dimensions: &[Dimension],
    words: &[String],
) -> Result<BTreeMap<String, Vec<String>>, LabError> {
    let mut only: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for word in words {
        let (name, levels) = match word.split_once('=') {
            Some((name, levels)) => (Some(name), levels),
            None => (None, word.as_str()),
        };
        let mut rest = Some(levels);
        while let Some(levels) = rest {
            let Some((dimension, level)) = first_level(dimensions, name, levels) else {
                return Err(LabError::Unknown(no_such_level(dimensions, word)));
            };
            only.entry(dimension.name.clone())
                .or_default()
                .push(level.to_owned());
            rest = levels[level.len()..].strip_prefix(',');
        }
    }
    Ok(only)
}

/// The level that a list of levels begins with. Names may have commas: the longest one counts.
fn first_level<'a>(
    dimensions: &'a [Dimension],
    name: Option<&str>,
    levels: &str,
) -> Option<(&'a Dimension, &'a str)> {
    let named = dimensions
        .iter()
        .filter(|dimension| name.is_none_or(|name| name == dimension.name));
    let known = named.flat_map(|dimension| {
        let levels = dimension.levels.iter();
        levels.map(move |level| (dimension, level.name.as_str()))
    });
    let is_first = |level: &str| {
        let rest = levels.strip_prefix(level);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
    };
    known
        .filter(|(_, level)| is_first(level))
        .max_by_key(|(_, level)| level.len())
}

fn no_such_level(dimensions: &[Dimension], word: &str) -> String {
    let known: Vec<String> = dimensions
        .iter()
        .map(|dimension| {
            let levels = dimension.levels.iter().map(|level| level.name.as_str());
            let levels = levels.collect::<Vec<_>>().join(",");
            format!("{}={levels}", dimension.name)
        })
        .collect();
    format!(
        "--only {word}: no such level; there are {}",
        known.join(" ")
    )
}

/// Takes out the contenders whose program is not installed, and says so.
pub(crate) fn leave_out(loaded: &Loaded, cases: &mut Vec<Case>) -> Vec<String> {
    let study = &loaded.study;
    let mut notes = Vec::new();
    for contender in &study.contender {
        let origin = contender.origin.as_ref().map(|origin| &origin.program);
        for program in [Some(&contender.program), origin].into_iter().flatten() {
            let command = study
                .program(program.get_ref())
                .map(|program| &program.command);
            let Some(first) = command.and_then(|command| command.first()) else {
                continue;
            };
            // A word with a template is our own program or a place of the study's.
            if first.contains('{') || process::find(first).is_some() {
                continue;
            }
            let name = contender.name.get_ref();
            notes.push(format!("{name} is left out: \"{first}\" is not installed"));
            cases.retain(|case| case.level(matrix::CONTENDER) != Some(name));
        }
    }
    notes
}

/// The runs of the raw data as they are, for the report.
pub(crate) fn read_results(folder: &std::path::Path) -> Result<(Header, Vec<Run>), LabError> {
    let header = results::read_header(folder)?;
    let runs = record::read(&folder.join(results::RAW))?;
    Ok((header, runs))
}

#[cfg(test)]
mod tests;
