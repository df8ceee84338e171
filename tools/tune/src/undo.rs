//! The commands that change a machine and put it back: `plan`, `apply`, `revert`, `status`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::change::Change;
use crate::cli::{self, EXIT_FAILED, EXIT_USAGE, Failed, Source, say};
use crate::facts::Facts;
use crate::findings;
use crate::journal::Journal;
use crate::placement::{self, Placement};
use crate::plan::{self, FindingFilter, Plan, Step};
use crate::steps::{self, Line, Outcome};
use crate::system::System;

/// Something was not put back, since somebody else has changed it.
const EXIT_LEFT: u8 = 5;

/// Where the journal is: a folder that a restart of the machine leaves alone.
const STATE: &str = "var/lib/turnpike/tune";

/// Which changes.
#[derive(Debug, Args)]
struct Choice {
    /// Also make the changes of findings that are only notes; test these by experiment
    #[arg(long)]
    notes: bool,
    /// Make only the changes of these findings
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Instead of findings' changes, put interrupts and workers on CPUs of their own; test it by
    /// experiment
    #[arg(long, value_enum, value_name = "SPLIT", conflicts_with_all = ["notes", "only"])]
    placement: Option<Placement>,
}

/// Where the journal is kept.
#[derive(Debug, Default, Args)]
pub(crate) struct State {
    /// The folder of the journal
    #[arg(long, value_name = "DIR", hide = true)]
    state: Option<PathBuf>,
}

impl State {
    pub(crate) fn folder(&self, root: &Path) -> PathBuf {
        self.state.clone().unwrap_or_else(|| root.join(STATE))
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    choice: Choice,
    /// Print JSON, which `apply --plan` takes
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    state: State,
    /// Make the changes of this plan, which `plan --json` printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["notes", "only", "placement"])]
    plan: Option<PathBuf>,
    /// With --plan: also change these settings, about which the plan has a caution
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "plan")]
    also: Vec<String>,
    /// Keep settings and queues over a restart, in files of sysctl.d and udev
    #[arg(long)]
    keep: bool,
    /// Make the changes; without it they are only shown
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revert {
    #[command(flatten)]
    state: State,
    /// The folder below which the files of the system are
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    state: State,
    /// The folder below which the files of the system are
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// `tune plan`.
pub(crate) fn plan(command: &PlanCommand) -> Result<ExitCode, Failed> {
    let facts = cli::read(&command.source)?;
    let plan = made(&facts, &command.choice)?;
    if command.json {
        let text = serde_json::to_string_pretty(&plan).unwrap_or_default();
        say(&(text + "\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let reasons = step.findings.join(", ");
        let _ = writeln!(
            text,
            "{}. {} (for {reasons})",
            index + 1,
            step.change.text()
        );
        if let Some(why) = step.change.obstacle(&facts) {
            let _ = writeln!(text, "   not possible here: {why}");
        }
    }
    text.push_str(if plan.steps.is_empty() {
        NOTHING
    } else {
        "`turnpike tune apply --yes` makes these changes, `turnpike tune revert` undoes them.\n"
    });
    text.push_str(&advice(&facts, &plan));
    say(&text);
    Ok(ExitCode::SUCCESS)
}

/// What a placement leaves to a person: the workers, and what would move interrupts again.
fn advice(facts: &Facts, plan: &Plan) -> String {
    if plan.workers.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "The workers' part is for the server's configuration:\n\n{}",
        placement::lines(&plan.workers)
    );
    if facts.running("irqbalance").next().is_some() {
        text.push_str("\nirqbalance runs and moves interrupts again: stop it first.\n");
    }
    text
}

const NOTHING: &str = "There is nothing to change. `turnpike tune check` shows what was examined; \
    --notes also applies the changes that notes suggest.\n";

fn made(facts: &Facts, choice: &Choice) -> Result<Plan, Failed> {
    if let Some(placement) = choice.placement {
        let planned = placement::plan(facts, placement);
        return planned.map_err(|why| (EXIT_FAILED, format!("not possible here: {why}")));
    }
    if let Some(id) = choice.only.iter().find(|id| findings::row(id).is_none()) {
        return Err((
            EXIT_USAGE,
            format!("there is no finding \"{id}\"; `turnpike tune check` has them"),
        ));
    }
    let wish = FindingFilter {
        notes: choice.notes,
        only: choice.only.clone(),
    };
    Ok(plan::make(facts, &findings::judge(facts), &wish))
}

/// `tune apply`.
pub(crate) fn apply(command: &Apply) -> Result<ExitCode, Failed> {
    let system = System::under(&command.source.root);
    let folder = command.state.folder(&command.source.root);
    // Before the facts are read: what an apply that died has left would hide what is to be changed.
    let journal = if command.yes && nix::unistd::geteuid().is_root() {
        let mut journal = open(&folder)?;
        recover(&system, &mut journal)?;
        Some(journal)
    } else {
        None
    };
    let facts = cli::read(&command.source)?;
    let mut plan = match &command.plan {
        Some(path) => read_plan(path)?,
        None => made(&facts, &command.choice)?,
    };
    let cautioned = plan.take_cautioned(&command.also);
    say(&left_out(&cautioned.map_err(|text| (EXIT_USAGE, text))?));
    if plan.steps.is_empty() {
        say(NOTHING);
        return Ok(ExitCode::SUCCESS);
    }
    if !command.yes {
        let lines = steps::preview(&system, &facts, &plan, command.keep);
        say(&text(&lines));
        say(
            "Nothing was changed. --yes makes these changes; `turnpike tune revert` undoes them.\n",
        );
        say(&advice(&facts, &plan));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(mut journal) = journal else {
        let lines = steps::preview(&system, &facts, &plan, command.keep);
        say(&text(&lines));
        return Err((
            EXIT_FAILED,
            "nothing was changed: root is needed".to_owned(),
        ));
    };
    let result = steps::apply(&system, &facts, &plan, command.keep, &mut journal);
    let lines = result.map_err(|error| {
        let path = journal.path().display().to_string();
        (
            EXIT_FAILED,
            format!("{path}: {error}; run `turnpike tune revert`"),
        )
    })?;
    say(&text(&lines));
    after(&plan);
    say(&advice(&facts, &plan));
    let failed = lines.iter().any(|(_, outcome)| outcome.is_left());
    Ok(ExitCode::from(if failed { EXIT_FAILED } else { 0 }))
}

/// The steps that were not asked for by name, with the reasons.
fn left_out(steps: &[Step]) -> String {
    let lines = steps.iter().filter_map(|step| {
        let Change::Setting { name, .. } = &step.change else {
            return None;
        };
        let (text, caution) = (step.change.text(), step.caution.as_deref()?);
        Some(format!(
            "{text}: left out: {caution}; --also {name} makes it\n"
        ))
    });
    lines.collect()
}

/// What a person has to do after the changes.
fn after(plan: &Plan) {
    let services = plan.steps.iter().filter_map(|step| match &step.change {
        Change::ServiceFiles { service, .. } => Some(service),
        _ => None,
    });
    for service in services {
        say(&format!(
            "The limit is in force after `systemctl daemon-reload` and a restart of {service}.\n"
        ));
    }
    let is_queue = |step: &plan::Step| step.change.text().starts_with("net.core.somaxconn");
    if plan.steps.iter().any(is_queue) {
        say("Sockets that listen already keep their queues until the server is restarted.\n");
    }
    say("`turnpike tune revert` undoes all of it.\n");
}

/// `tune revert`.
pub(crate) fn revert(command: &Revert) -> Result<ExitCode, Failed> {
    let system = System::under(&command.root);
    let mut journal = open(&command.state.folder(&command.root))?;
    if journal.parts.is_empty() {
        say("There is nothing to undo.\n");
        return Ok(ExitCode::SUCCESS);
    }
    let lines = steps::revert(&system, &mut journal).map_err(|error| failed(&journal, &error))?;
    say(&text(&lines));
    let is_left = lines.iter().any(|(_, outcome)| outcome.is_left());
    Ok(ExitCode::from(if is_left { EXIT_LEFT } else { 0 }))
}

/// `tune status`.
pub(crate) fn status(command: &Status) -> Result<ExitCode, Failed> {
    let system = System::under(&command.root);
    let folder = command.state.folder(&command.root);
    let parts = Journal::look(&folder)
        .map_err(|error| (EXIT_FAILED, format!("{}: {error}", folder.display())))?;
    let mut text = String::new();
    for part in parts.iter().filter(|part| !part.is_undone) {
        let begin = &part.begin;
        let _ = writeln!(text, "tune {} (process {}):", begin.command, begin.process);
        for (path, standing) in steps::standing(&system, part) {
            let _ = writeln!(text, "  {path}: {standing}");
        }
        if steps::is_broken_off(&system, part) {
            text.push_str("  It was interrupted: `turnpike tune revert` puts everything back.\n");
        }
        if begin.boot != system.boot() {
            text.push_str("  The machine was restarted since.\n");
        }
    }
    say(if text.is_empty() {
        "Nothing is changed.\n"
    } else {
        &text
    });
    Ok(ExitCode::SUCCESS)
}

fn read_plan(path: &Path) -> Result<Plan, Failed> {
    let usage = |text: String| (EXIT_USAGE, format!("{}: {text}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| usage(error.to_string()))?;
    if plan.schema == plan::SCHEMA {
        Ok(plan)
    } else {
        Err(usage(format!(
            "not a plan of `turnpike tune plan --json`: its schema is \"{}\" and not \"{}\"",
            plan.schema,
            plan::SCHEMA
        )))
    }
}

pub(crate) fn open(folder: &Path) -> Result<Journal, Failed> {
    Journal::open(folder).map_err(|text| (EXIT_FAILED, text))
}

/// Puts back what a command that died has left.
pub(crate) fn recover(system: &System, journal: &mut Journal) -> Result<(), Failed> {
    let lines = steps::recover(system, journal).map_err(|error| failed(journal, &error))?;
    if !lines.is_empty() {
        say("The last run was interrupted; its changes are undone first:\n");
        say(&text(&lines));
    }
    Ok(())
}

fn failed(journal: &Journal, error: &std::io::Error) -> Failed {
    (
        EXIT_FAILED,
        format!("{}: {error}", journal.path().display()),
    )
}

pub(crate) fn text(lines: &[Line]) -> String {
    let mut text = String::new();
    for (name, outcome) in lines {
        let _ = writeln!(text, "{name}: {}", outcome.text());
    }
    let done = lines
        .iter()
        .any(|(_, outcome)| matches!(outcome, Outcome::Impossible(_)));
    if done {
        text.push_str("Changes that are not possible here were left out.\n");
    }
    text
}
