//! `tune climb --live`: steps on a server that runs and has clients.
//!
//! A step changes what a reload or a kernel setting undoes, and only for as long as `ledger` allows
//! it to be worse than what was there. `found` is the server, `trust` says whether root may run its
//! program, `run` runs it, and `words` is what it was told; `rewrite` makes a step's configuration
//! of the one that is there, `service` changes and measures, and `search` decides as in any climb.
//! The journal has every change before it is made, so that whoever comes next can put it back.

mod found;
mod ledger;
mod rewrite;
mod run;
mod service;
mod trust;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use turnpike_lab::bench;

use super::knobs::Levels;
use super::progress::Shown;
use super::search::{self, Failure};
use super::{Climb, bundle, guard, record, table};
use crate::cli::{EXIT_FAILED, EXIT_USAGE, Failed, say};
use crate::journal::Journal;
use crate::report;
use crate::system::System;
use crate::undo::{self, State};
use rewrite::Original;
use service::{Bounds, Service, Traffic};

/// Options of a climb on a live server.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Climb on the server that runs with this configuration or pid file, and has clients: change
    /// its configuration and kernel settings, and add load to measure each step
    #[arg(id = "live", long = "live", value_name = "FILE")]
    #[arg(conflicts_with_all = ["server", "grid", "record", "replay"])]
    pub(super) server: Option<PathBuf>,
    /// With --live: the largest share of the climb's time in which the server may do worse than
    /// before
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    #[arg(requires = "live")]
    pub(super) worse_share: Share,
    /// With --live: end after this time with what was found
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = minutes)]
    #[arg(requires = "live")]
    pub(super) minutes: f64,
    /// With --live: what the load generator asks for; without it the first address of a listen
    /// without TLS
    #[arg(long, value_name = "URL", requires = "live")]
    url: Option<String>,
    /// With --live: the length of each run; without it 2, with --quick 0.6
    #[arg(long, value_name = "S", requires = "live", value_parser = run_seconds)]
    run_seconds: Option<f64>,
    #[command(flatten)]
    state: State,
}

/// A share above 0 and at most 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share(f64);

fn share(word: &str) -> Result<Share, String> {
    let number = word.strip_suffix('%').unwrap_or(word);
    let percent: f64 = number.parse().map_err(|_| "not a number of percent")?;
    if percent > 0.0 && percent <= 100.0 {
        Ok(Share(percent / 100.0))
    } else {
        Err("above 0 and at most 100 percent".to_owned())
    }
}

fn minutes(word: &str) -> Result<f64, String> {
    /// Two days: a longer climb sees another load than the one that it began with.
    const MINUTES_MAX: f64 = 2880.0;
    let minutes: f64 = word.parse().map_err(|_| "not a number of minutes")?;
    if minutes > 0.0 && minutes <= MINUTES_MAX {
        Ok(minutes)
    } else {
        Err(format!("above 0 and at most {MINUTES_MAX} minutes"))
    }
}

fn run_seconds(word: &str) -> Result<f64, String> {
    /// Shorter, and the load generator has hardly begun.
    const SECONDS_MIN: f64 = 0.1;
    /// Longer, and a single run may be worse for longer than anybody wants.
    const SECONDS_MAX: f64 = 60.0;
    let seconds: f64 = word.parse().map_err(|_| "not a number of seconds")?;
    if (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("from {SECONDS_MIN} to {SECONDS_MAX} seconds"))
    }
}

/// Runs a climb on a live server.
pub(super) fn run(command: &Climb, file: &Path) -> Result<ExitCode, Failed> {
    let failed = |text: String| (EXIT_FAILED, text);
    let usage = |text: String| (EXIT_USAGE, text);
    if !nix::unistd::geteuid().is_root() {
        let text = "root is needed: climb --live changes kernel settings and reloads the server";
        return Err(failed(text.to_owned()));
    }
    turnpike_host::raise_file_limit();
    bench::watch();
    let system = System::under("/");
    let state = command.live.state.folder(Path::new("/"));
    let mut journal = undo::open(&state)?;
    // Before the server is looked at: what a dead climb has left would be taken for its own.
    undo::recover(&system, &mut journal)?;
    let folder = guard::folder(std::process::id());
    let mut service = service(command, file, journal, &folder).map_err(usage)?;
    super::make_folder(command)?;
    let made = std::fs::create_dir(&folder);
    made.map_err(|error| failed(format!("{}: {error}", folder.display())))?;
    let watchdog = guard::start(&folder, Some(&state)).map_err(failed)?;
    say(&service.announcement());
    let result = climbed(command, &mut service);
    let _ = std::fs::remove_dir_all(&folder);
    let result = match result {
        Ok(text) => Ok(text),
        Err(why) => Err(broken_off(command, &mut service, &why)),
    };
    watchdog.release();
    say(&result.map_err(failed)?);
    Ok(ExitCode::SUCCESS)
}

/// The server that is to be climbed on.
fn service(
    command: &Climb,
    file: &Path,
    journal: Journal,
    folder: &Path,
) -> Result<Service, String> {
    let options = &command.live;
    let found = found::find(file)?;
    let original = Original::read(&found.configuration)?;
    let url = match (&options.url, original.address()) {
        (Some(url), _) => url.clone(),
        (None, Some(address)) => format!("http://{address}/"),
        (None, None) => {
            let text = "no listen is without TLS: give --url what the load generator asks for";
            return Err(text.to_owned());
        }
    };
    let traffic = Traffic {
        url,
        connections: command.connections,
        seconds: options
            .run_seconds
            .unwrap_or(if command.quick { 0.6 } else { 2.0 }),
        folder: folder.to_path_buf(),
    };
    let bounds = Bounds {
        worse_share: options.worse_share.0,
        seconds: options.minutes * 60.0,
        p99_factor: command.p99_factor,
    };
    Service::new(found, original, journal, bounds, traffic)
}

/// Climbs, leaves what was found in force, and says what that is.
fn climbed(command: &Climb, service: &mut Service) -> Result<String, String> {
    let mut climbing = command.climbing();
    climbing.server = service.name();
    climbing.effort.has_all_knobs = true;
    let effort = climbing.effort;
    eprintln!(
        "Climbing on {}. Ctrl-C ends it and puts everything back.",
        climbing.server
    );
    service.begin().map_err(Failure::text)?;
    let mut shown = Shown::new(service);
    let result = search::climb(&mut shown, Levels::default(), effort, |tried| {
        eprintln!("{}", table::line(tried));
    });
    drop(shown);
    if let (Err(_), Some(path)) = (&result, &command.bundle) {
        bundle::keep(
            path,
            &record::text(&climbing, &service.runs),
            service.runs.len(),
        )?;
    }
    let climbed = result.map_err(Failure::text)?;
    service.settle(climbed.levels).map_err(Failure::text)?;
    let mut text = table::ladder(&climbed, report::width());
    text.push_str(&service.ending(climbed.levels));
    if let Some(path) = &command.bundle {
        let record = record::text(&climbing, &service.runs);
        let lines = service.lines(climbed.levels).join("\n") + "\n";
        let plan = bundle::plan(&climbing, &service.changed_settings(climbed.levels));
        bundle::make(path, &climbed, &plan, &text, &lines, &record)?;
    }
    service.end()?;
    Ok(text)
}

/// Puts everything back, and says why and how.
fn broken_off(command: &Climb, service: &mut Service, why: &str) -> String {
    if let Some(path) = &command.bundle {
        // Only where nothing is in it.
        let _ = std::fs::remove_dir(path);
    }
    match service.put_back() {
        Ok((_, true)) => format!("{why}; everything is put back"),
        Ok((lines, false)) => format!("{why}; not everything could be put back:\n{lines}"),
        Err(error) => format!("{why}; {error}; run `turnpike tune revert`"),
    }
}
#[cfg(test)]
mod tests {
    use super::{minutes, share};

    #[test]
    fn bounds_are_numbers_within_reason() {
        let shares = ["5%", "5", "100%", "0.5%"].map(|word| share(word).map(|share| share.0));
        assert_eq!(shares, [Ok(0.05), Ok(0.05), Ok(1.0), Ok(0.005)]);
        for word in ["0", "-1%", "101%", "x", "", "NaN"] {
            assert!(share(word).is_err(), "{word}");
        }
        assert_eq!(minutes("0.5"), Ok(0.5));
        for word in ["0", "-1", "2881", "inf", "x"] {
            assert!(minutes(word).is_err(), "{word}");
        }
    }
}
