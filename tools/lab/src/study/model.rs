//! A study as in its file. Names that other tables refer to keep their place in the file, so that
//! an error can be reported with its line. This module checks nothing: see `check`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::files::FileContent;

/// Dimension (`contender`, or a factor's name) to level.
pub(crate) type Selector = BTreeMap<Spanned<String>, Spanned<String>>;

/// Dimension to the levels that are meant.
pub(crate) type Selection = BTreeMap<Spanned<String>, Vec<Spanned<String>>>;

/// A whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Study {
    pub(crate) name: Spanned<String>,
    pub(crate) title: String,
    /// The publisher, in words.
    pub(crate) source: String,
    /// Where it can be read.
    #[serde(default)]
    pub(crate) source_url: Option<String>,
    /// What it asks and how, in words.
    pub(crate) about: String,
    /// Differences of this machine or kernel, and other facts that a reader of the results must
    /// know.
    #[serde(default)]
    pub(crate) caveats: Vec<String>,
    #[serde(default)]
    pub(crate) run: RunTable,
    #[serde(default)]
    pub(crate) placement: Option<Spanned<Placement>>,
    #[serde(default)]
    pub(crate) drive: Option<Spanned<Drive>>,
    /// The system calls of a request, counted after the measured time.
    #[serde(default)]
    pub(crate) count: Option<Spanned<Count>>,
    /// Files that contenders serve or include: path under the contender's folder, and content.
    #[serde(default)]
    pub(crate) files: BTreeMap<Spanned<String>, FileContent>,
    /// Values for templates, weaker than a contender's and a level's own.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// Kernel settings for the study's time, where the machine lets us.
    #[serde(default)]
    pub(crate) sysctl: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) configuration: Vec<Configuration>,
    /// Programs beside the ones that ship.
    #[serde(default)]
    pub(crate) program: BTreeMap<String, Program>,
    #[serde(default)]
    pub(crate) contender: Vec<Contender>,
    #[serde(default)]
    pub(crate) factor: Vec<Factor>,
    /// Combinations that make no sense.
    #[serde(default)]
    pub(crate) without: Vec<Without>,
    #[serde(default)]
    pub(crate) claim: Vec<Claim>,
    /// What this project wants to reach; of goals for the same figure the last one counts.
    #[serde(default)]
    pub(crate) goal: Vec<Goal>,
    #[serde(default)]
    pub(crate) plot: Vec<Plot>,
    #[serde(default)]
    pub(crate) published: Vec<Published>,
    /// Steps that build on each other.
    #[serde(default)]
    pub(crate) ladder: Vec<Step>,
    /// How such steps are tried on this machine.
    #[serde(default)]
    pub(crate) climb: Option<Spanned<Climb>>,
}

/// How often and how long.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunTable {
    pub(crate) repetitions: u32,
    /// Seconds that are measured.
    pub(crate) seconds: f64,
    /// Seconds before them that are dropped.
    pub(crate) warmup_s: f64,
    pub(crate) seed: u64,
    pub(crate) topology: Spanned<String>,
    /// Whether runs count in which the driver was the limit: for studies that compare costs per
    /// request, not rates.
    pub(crate) driver_may_limit: bool,
    pub(crate) quick: Quick,
}

impl Default for RunTable {
    fn default() -> Self {
        RunTable {
            repetitions: 6,
            seconds: 2.0,
            warmup_s: 0.5,
            seed: 1,
            topology: Spanned::new(0..0, "loopback".to_owned()),
            driver_may_limit: false,
            quick: Quick::default(),
        }
    }
}

/// What `--quick` changes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Quick {
    pub(crate) repetitions: u32,
    pub(crate) seconds: f64,
    pub(crate) warmup_s: f64,
}

impl Default for Quick {
    fn default() -> Self {
        Quick {
            // The fewest that have an interval.
            repetitions: 3,
            seconds: 1.0,
            warmup_s: 0.3,
        }
    }
}

/// Which CPUs serve and which drive.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placement {
    pub(crate) server: String,
    pub(crate) driver: String,
}

/// The load.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drive {
    /// `load`, `wrk`, `ab`, or `command`: any program that prints `METRIC VALUE` lines.
    pub(crate) program: Spanned<String>,
    /// The generator's words, templates; duration, warm-up, seed and output are the lab's.
    pub(crate) arguments: Vec<String>,
    /// The command of `command`.
    #[serde(default)]
    pub(crate) command: Vec<String>,
}

impl Drive {
    /// Whether the program and its command belong together.
    pub(crate) fn is_whole(&self) -> bool {
        (self.program.get_ref() == "command") != self.command.is_empty()
    }
}

/// Requests whose system calls are counted by strace: in a time of its own, since that slows the
/// server down.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Count {
    pub(crate) requests: u64,
    /// `load` or `ab`, which can send so many requests.
    pub(crate) program: Spanned<String>,
    /// The generator's words, templates; the number of requests and the output are the lab's.
    pub(crate) arguments: Vec<String>,
    /// Where they are counted; everywhere if empty.
    #[serde(default)]
    pub(crate) at: Selection,
}

/// A named template.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    pub(crate) name: Spanned<String>,
    pub(crate) text: Spanned<String>,
}

/// How a kind of server is started, asked and stopped.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    /// Program and arguments, templates.
    pub(crate) command: Vec<String>,
    /// The configuration's file name in the contender's folder.
    #[serde(default = "default_file")]
    pub(crate) file: String,
    /// A command that prints the version, empty where there is none.
    #[serde(default)]
    pub(crate) version: Vec<String>,
    /// `connect`: it listens; `answer`: it answers `ready_path` with 200.
    #[serde(default)]
    pub(crate) ready: Ready,
    #[serde(default = "default_path")]
    pub(crate) ready_path: String,
    /// The signal that ends it.
    #[serde(default)]
    pub(crate) stop: Stop,
    /// A log file in its folder, in addition to its standard error.
    #[serde(default)]
    pub(crate) log: Option<String>,
}

fn default_file() -> String {
    "server.conf".to_owned()
}

fn default_path() -> String {
    "/".to_owned()
}

/// When a contender is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ready {
    /// The port can be connected to.
    Connect,
    /// The server answers with status 200.
    #[default]
    Answer,
    /// As soon as it runs.
    Start,
}

/// How a contender is asked to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Stop {
    /// SIGTERM.
    #[default]
    #[serde(rename = "TERM")]
    Term,
    /// SIGQUIT.
    #[serde(rename = "QUIT")]
    Quit,
    /// SIGINT.
    #[serde(rename = "INT")]
    Interrupt,
}

/// A server with a configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contender {
    pub(crate) name: Spanned<String>,
    pub(crate) program: Spanned<String>,
    #[serde(default)]
    pub(crate) configuration: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// A server behind it, at `{origin_port}`.
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
    /// The levels that it runs at; all of a factor that is not here.
    #[serde(default)]
    pub(crate) only: Selection,
}

/// A server behind a contender.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    pub(crate) program: Spanned<String>,
    pub(crate) configuration: Spanned<String>,
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) side: Side,
}

/// Where a server behind a contender runs, and to whose CPU time its own is added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    /// The contender's: both together answer.
    #[default]
    Server,
    /// The driver's: only the contender is measured.
    Driver,
}

/// Something that is varied.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Factor {
    pub(crate) name: Spanned<String>,
    pub(crate) title: String,
    /// Levels that are no more than their names; or `levels`, or `scale`.
    #[serde(default)]
    pub(crate) names: Vec<Spanned<String>>,
    /// Levels that change several values.
    #[serde(default)]
    pub(crate) levels: Vec<Level>,
    /// `cpus`: 1, 2, 4 ... as many as the machine has.
    #[serde(default)]
    pub(crate) scale: Option<Spanned<String>>,
    /// The levels of a quick run; all where it is absent.
    #[serde(default)]
    pub(crate) quick: Option<Vec<Spanned<String>>>,
}

/// A level that changes several values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Level {
    pub(crate) name: Spanned<String>,
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// Words for the driver, templates, before those of its `[drive]`.
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
    /// The load, in place of the study's.
    #[serde(default)]
    pub(crate) drive: Option<Drive>,
    /// Kernel settings for its time, put back after it.
    #[serde(default)]
    pub(crate) sysctl: BTreeMap<String, String>,
    /// How the server's end of the veth pair receives, for its time: `gro`, or an attribute under
    /// `/sys/class/net/INTERFACE`.
    #[serde(default)]
    pub(crate) interface: BTreeMap<String, String>,
}

/// A combination that is left out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Without {
    pub(crate) at: Selector,
    /// In words, for the report.
    pub(crate) why: String,
}

/// What a study says, or what is asked of it: a ratio of two cases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) text: String,
    pub(crate) metric: Spanned<String>,
    pub(crate) of: Selector,
    pub(crate) against: Selector,
    /// What both cases share; dimensions that nothing fixes are gone through.
    #[serde(default)]
    pub(crate) at: Selector,
    /// Whether the study saw the ratio above or below 1; absent for a question of ours.
    #[serde(default)]
    pub(crate) published: Option<f64>,
    /// Which way the claim goes.
    pub(crate) expect: Expect,
}

/// Which way a claim goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expect {
    /// The ratio is above 1.
    Above,
    /// The ratio is below 1.
    Below,
    /// The ratio is 1, as far as can be seen.
    Same,
    /// Nothing is claimed, it is only asked.
    Open,
}

/// A figure with a limit: a case's own, or its ratio to another case's.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    pub(crate) metric: Spanned<String>,
    pub(crate) of: Selector,
    pub(crate) against: Selector,
    /// Where it holds; dimensions that it does not name are gone through.
    #[serde(default)]
    pub(crate) at: Selection,
    /// The limit of the figure, in the metric's unit.
    #[serde(default)]
    pub(crate) at_most: Option<f64>,
    /// The limit of the ratio. A goal without any limit shows both figures.
    #[serde(default)]
    pub(crate) ratio_at_most: Option<f64>,
}

/// A picture.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    pub(crate) kind: PlotKind,
    pub(crate) title: String,
    /// For bars and scaling.
    #[serde(default)]
    pub(crate) metric: Option<Spanned<String>>,
    /// The dimension along the picture.
    #[serde(default)]
    pub(crate) along: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) at: Selector,
}

/// What kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlotKind {
    /// A median with its interval for each case.
    Bars,
    /// Latency by share of requests.
    Distribution,
    /// Connections by worker.
    Shares,
    /// A metric by a numeric factor, with the law that fits it.
    Scaling,
}

/// A table of the publication.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) title: String,
    /// Where it was measured.
    pub(crate) machine: String,
    /// Dimensions of ours that the whole table stands at.
    #[serde(default)]
    pub(crate) at: Selector,
    pub(crate) row: Vec<PublishedRow>,
}

/// A row of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedRow {
    pub(crate) label: String,
    /// What of ours it is compared with; contenders that it does not fix each get a column.
    /// Absent: nothing of ours.
    #[serde(default)]
    pub(crate) at: Option<Selector>,
    /// Metric to value, in the metric's unit.
    pub(crate) figures: BTreeMap<Spanned<String>, f64>,
    /// What no metric of ours stands for.
    #[serde(default)]
    pub(crate) remark: Option<String>,
}

/// A command that tries the steps of a ladder.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Climb {
    /// Program and arguments, templates: `{turnpike}` is this binary, `{folder}` a folder for the
    /// result, which the command makes.
    pub(crate) command: Vec<String>,
    /// More words for a quick run.
    #[serde(default)]
    pub(crate) quick: Vec<String>,
}

/// A step of a ladder.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) connections_per_s: f64,
    /// Whether the step was kept.
    #[serde(default = "default_kept")]
    pub(crate) kept: bool,
    /// What a tuner would change.
    #[serde(default)]
    pub(crate) changes: Vec<String>,
    /// The tuner's names of what is changed.
    #[serde(default)]
    pub(crate) knobs: Vec<String>,
}

fn default_kept() -> bool {
    true
}

impl Factor {
    /// The names of its levels, in their order, with their places.
    pub(crate) fn level_names(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.names
            .iter()
            .chain(self.levels.iter().map(|level| &level.name))
    }
}

impl Study {
    /// The template of this name.
    pub(crate) fn configuration(&self, name: &str) -> Option<&Spanned<String>> {
        let found = self
            .configuration
            .iter()
            .find(|configuration| configuration.name.get_ref() == name)?;
        Some(&found.text)
    }

    /// The contender of a case.
    pub(crate) fn contender(&self, case: &crate::matrix::Case) -> Option<&Contender> {
        let name = case.level(crate::matrix::CONTENDER)?;
        self.contender
            .iter()
            .find(|contender| contender.name.get_ref() == name)
    }

    /// How a program is run: the study's own, else the one that ships.
    pub(crate) fn program(&self, name: &str) -> Option<&Program> {
        self.program.get(name).or_else(|| super::program(name))
    }
}
