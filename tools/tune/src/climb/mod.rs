//! `tune climb`: finds the best levels of fifteen knobs by experiment, in network namespaces of its
//! own, as study S3 did by hand: one step, paired runs, keep or undo.
//!
//! `knobs` says what is moved, `cause` what binds and so what is tried next, `search` tries it, and
//! `judge` says whether it stays. They are pure except for the runs that a `Bench` gives, as is
//! `optimum`, which compares the end with the best of all, and `goal`, which says whether that is
//! near enough. `field` makes real runs with a `server`, `live` makes them with one that has
//! clients, and a record gives them again. `bundle` writes the result, for people and for other
//! machines.

mod bundle;
mod cause;
mod clock;
mod driver;
mod field;
mod goal;
mod guard;
mod judge;
mod knobs;
mod live;
mod optimum;
mod progress;
mod record;
mod search;
mod server;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use turnpike_host::Host;
use turnpike_lab::bench::{self, is_asked};

use crate::cli::{EXIT_FAILED, EXIT_USAGE, Failed, say};
use crate::report;
use field::{Field, FieldSettings};
use goal::Reached;
use knobs::{Knob, Levels};
use optimum::Optimum;
use progress::Shown;
use record::Climbing;
use search::{Bench, Climbed, Effort, Failure};
use server::Server;

pub(crate) use guard::run as guard;

#[derive(Debug, Args)]
pub(crate) struct Climb {
    /// Seven settings and shorter runs: about a quarter of an hour
    #[arg(long)]
    quick: bool,
    /// The server: a program that takes nginx's configuration with -c, or the contender of a study
    /// of turnpike lab (a file that ends in .toml), whose factors are settings
    #[arg(long, value_name = "PROGRAM", default_value = "nginx")]
    server: PathBuf,
    /// Connections that the load generator keeps open
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Undo a step that makes the 99th percentile of latency longer than N times
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    p99_factor: f64,
    /// Run all 432 combinations of seven settings after the climb, and compare its end with the
    /// best: twenty minutes more
    #[arg(long)]
    grid: bool,
    /// Write the ladder, its picture, the configuration, a plan for apply and every run to a new
    /// folder
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Write every run to a file, which --replay takes
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Decide again from recorded runs; runs nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "quick", "grid"])]
    replay: Option<PathBuf>,
    #[command(flatten)]
    live: live::Options,
}

/// Pairs of runs before a step is decided. Four happen to agree on a step that does nothing.
const PAIRS_MIN: usize = 8;
/// How much wider an interval has to exclude 1 for a step to be decided before its last look: who
/// looks often sees chance differences more often. Looks at a probability of 0.001 leave the last
/// look's 95 % nearly whole (J. L. Haybittle 1971; R. Peto and others 1976); with 7 degrees of
/// freedom that is 5.41 deviations against 2.36.
const EARLY_FACTOR: f64 = 5.41 / 2.36;

/// Ended by Ctrl-C, as a shell has it.
const EXIT_INTERRUPTED: u8 = 130;

/// A climb beside the best of the grid missed its goals.
const EXIT_MISSED: u8 = 6;

impl Climb {
    /// A program's name without its folders, which are nobody's business in a record; the whole
    /// path of a study, which is read again.
    fn server_name(&self) -> String {
        let name = self.server.file_name().map(Path::new);
        let name = name.filter(|name| name.extension().is_none_or(|ending| ending != "toml"));
        name.unwrap_or(&self.server).display().to_string()
    }

    fn climbing(&self) -> Climbing {
        // A buffer for the access log saves 3 to 7 % of the server's CPU time. The ratios of quick
        // pairs deviate by 12 % on a machine with other work, so that 64 leave 3 % open.
        let (pairs, pairs_max) = if self.quick { (4, 64) } else { (6, 24) };
        Climbing {
            server: self.server_name(),
            effort: Effort {
                pairs,
                pairs_min: PAIRS_MIN,
                pairs_max,
                pairs_without_gain_max: pairs_max / 2,
                early_factor: EARLY_FACTOR,
                p99_factor_max: self.p99_factor,
                has_all_knobs: !self.quick,
            },
            has_grid: self.grid,
        }
    }
}

/// `tune climb`.
pub(crate) fn run(command: &Climb) -> Result<ExitCode, Failed> {
    if let Some(path) = &command.replay {
        let recorded = record::read(path).map_err(|text| (EXIT_USAGE, text))?;
        make_folder(command)?;
        return replayed(command, recorded).map_err(|text| (EXIT_USAGE, text));
    }
    if let Some(file) = &command.live.server {
        return live::run(command, file);
    }
    if !nix::unistd::geteuid().is_root() {
        let text = "root is needed: climb makes network namespaces of its own";
        return Err((EXIT_FAILED, text.to_owned()));
    }
    let server = Server::of(&command.server).map_err(|text| (EXIT_USAGE, text))?;
    make_folder(command)?;
    turnpike_host::raise_file_limit();
    bench::watch();
    guard::clean_dead();
    let folder = guard::folder(std::process::id());
    let result = real(command, &server, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    if let (Err(_), Some(path)) = (&result, &command.bundle) {
        // Only where nothing is in it.
        let _ = std::fs::remove_dir(path);
    }
    result.map_err(|text| (EXIT_FAILED, format!("{text}; everything is put back")))
}

/// Makes the bundle's folder: what cannot be written at the end is said at the beginning.
fn make_folder(command: &Climb) -> Result<(), Failed> {
    let Some(path) = &command.bundle else {
        return Ok(());
    };
    let made = std::fs::create_dir(path);
    made.map_err(|error| (EXIT_USAGE, format!("{}: {error}", path.display())))
}

fn replayed(command: &Climb, mut recorded: record::Recorded) -> Result<ExitCode, String> {
    let climbing = recorded.climbing.clone();
    let record = record::text(&climbing, &recorded.all);
    let result = searched(&mut recorded, &climbing, &mut |_| {}).map_err(Failure::text)?;
    ended(command, &climbing, &result, &record)
}

/// A climb, and the best of the grid where that is asked for.
fn searched(
    bench: &mut dyn Bench,
    climbing: &Climbing,
    progress: &mut dyn FnMut(&str),
) -> Result<(Climbed, Option<Optimum>), Failure> {
    let effort = climbing.effort;
    let mut climbed = search::climb(bench, Levels::default(), effort, |tried| {
        progress(&table::line(tried));
    })?;
    if !climbing.has_grid || climbed.over.is_some() {
        return Ok((climbed, None));
    }
    let optimum = optimum::find(bench, climbed.levels, effort, |left| {
        progress(&format!("a run of each of {left} combinations"));
    });
    match optimum {
        Ok(optimum) => Ok((climbed, Some(optimum))),
        // The climb is whole all the same.
        Err(Failure::Over(why)) => {
            climbed.over = Some(why);
            Ok((climbed, None))
        }
        Err(failure) => Err(failure),
    }
}

fn real(command: &Climb, server: &Server, folder: &Path) -> Result<ExitCode, String> {
    let climbing = command.climbing();
    let wish = FieldSettings {
        server: server.clone(),
        connections: command.connections,
        seconds: if command.quick { 0.6 } else { 3.0 },
    };
    let about = if command.quick {
        "a quarter of an hour"
    } else {
        "some hours"
    };
    eprintln!(
        "Climbing with {} in network namespaces of its own, which takes {about} on an idle \
         machine. Ctrl-C ends it, and keeps what was measured.",
        climbing.server
    );
    let guard = guard::start(folder, None)?;
    let mut field = Field::new(wish, folder, Host::here().own_cpus())?;
    let mut shown = Shown::new(&mut field);
    let result = searched(&mut shown, &climbing, &mut |line| eprintln!("{line}"));
    drop(shown);
    let record = record::text(&climbing, &field.runs);
    if let Some(path) = &command.record {
        bundle::write(path, &record)?;
    }
    if let (Err(_), Some(path)) = (&result, &command.bundle) {
        bundle::keep(path, &record, field.runs.len())?;
    }
    let result = result.map_err(Failure::text)?;
    let status = ended(command, &climbing, &result, &record)?;
    drop(field);
    guard.release();
    Ok(if is_asked() {
        ExitCode::from(EXIT_INTERRUPTED)
    } else {
        status
    })
}

/// Says how a climb has ended, and writes its bundle.
fn ended(
    command: &Climb,
    climbing: &Climbing,
    (climbed, optimum): &(Climbed, Option<Optimum>),
    record: &str,
) -> Result<ExitCode, String> {
    let optimum = optimum.as_ref();
    let reached = optimum.map(|optimum| Reached::of(&climbing.server, climbed, optimum));
    let mut text = table::text(climbed, optimum, report::width());
    if let Some(reached) = &reached {
        text.push_str(&reached.text(report::width()));
    }
    // A record of a server whose study is not here any more is judged all the same.
    let configuration = Server::of(Path::new(&climbing.server))
        .and_then(|server| field::portable(&server, climbed.levels, &Host::here().own_cpus()))
        .unwrap_or_else(|why| format!("# not known: {why}\n"));
    if let Some(path) = &command.bundle {
        let plan = bundle::plan(climbing, &bundle::changed(climbed));
        bundle::make(path, climbed, &plan, &text, &configuration, record)?;
        if let Some(reached) = &reached {
            bundle::write(&path.join(bundle::GOALS), &reached.json())?;
        }
    }
    say(&text);
    say(&format!("\nThe final configuration:\n\n{configuration}"));
    for (path, value) in climbed.levels.settings() {
        say(&format!("# {} = {value}\n", path.replace('/', ".")));
    }
    if climbed.levels.level(Knob::SynCookies) == 1 {
        say("# tcp_syncookies 0 is for a network that nobody floods; tune check advises 1.\n");
    }
    Ok(match reached {
        Some(reached) if !reached.is_reached() => ExitCode::from(EXIT_MISSED),
        _ => ExitCode::SUCCESS,
    })
}

#[cfg(test)]
mod tests;
