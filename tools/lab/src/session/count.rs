//! The system calls of a case's requests: counted after the measured time, while the contender
//! still runs, since counting slows it down.

use nix::sys::signal::Signal;

use super::measure::{COUNTING_PATIENCE, Setting, await_end};
use crate::contender::Running;
use crate::driver;
use crate::error::LabError;
use crate::probe::{CallCounter, Calls};
use crate::process::Process;
use crate::study::Study;
use crate::study::model::Count;
use crate::topology::Topology;

/// The name of the driver's output.
const NAME: &str = "counting";

/// The calls of each request, or why they are not known.
///
/// # Errors
/// The contender died, or the driver failed.
pub(super) fn calls(
    study: &Study,
    setting: &Setting<'_>,
    running: &mut Running,
    topology: &Topology,
) -> Result<Result<Calls, String>, LabError> {
    let count = study.count.as_ref().map(toml::Spanned::get_ref);
    let Some(count) = count.filter(|count| setting.case.is_within(&count.at)) else {
        return Ok(Err("the study does not count them here".to_owned()));
    };
    let counter = match CallCounter::start(&running.family(), setting.folder.path()) {
        Ok(counter) => counter,
        Err(why) => return Ok(Err(why)),
    };
    send(count, setting, running, topology)?;
    let calls = counter.end(count.requests);
    let output = std::fs::read_to_string(setting.folder.path().join(format!("{NAME}.out")));
    let failed = driver::failed(count, &output.unwrap_or_default());
    Ok(match failed {
        Ok(failed) if failed > 0.0 => Err(format!("{failed:.0} requests failed while counted")),
        Ok(_) => calls,
        Err(why) => Err(why),
    })
}

/// Has the driver send the requests that are counted.
fn send(
    count: &Count,
    setting: &Setting<'_>,
    running: &mut Running,
    topology: &Topology,
) -> Result<(), LabError> {
    let wrong = |text: String| LabError::Driver {
        step: setting.case.label(),
        text,
    };
    let words = driver::counting_words(count, &setting.values).map_err(wrong)?;
    let words = topology.driver_words(words);
    let (cpus, folder) = (&setting.placed.driver, setting.folder.path());
    let started = Process::start(&words, cpus, folder, NAME, Signal::SIGINT);
    let mut driver = started.map_err(wrong)?;
    await_end(setting, &mut driver, running, COUNTING_PATIENCE)
}
