//! A study that is a ladder: steps that build on each other have no cases to interleave. A command
//! of the study climbs it on this machine, in the lab's place; the lab only makes its words.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::environment;
use crate::error::LabError;
use crate::process;
use crate::session::{SessionOptions, fresh_folder};
use crate::study::{self, climb_words};

/// Becomes the command that climbs the study's ladder; returns where the study has none.
///
/// # Errors
/// An option that a climb does not have, no folder, or a command that does not start.
pub(crate) fn climb(wish: &SessionOptions) -> Result<(), LabError> {
    let loaded = study::load(&wish.study)?;
    let Some(climb) = &loaded.study.climb else {
        return Ok(());
    };
    if let Some(name) = foreign_option(wish) {
        let text = format!("a climb accepts only --quick and --out, not {name}");
        return Err(loaded.source.mistake(climb, text));
    }
    let name = loaded.study.name.get_ref();
    let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
    let name = format!("{date}-{name}-{}", environment::slug());
    std::fs::create_dir_all(&wish.out).map_err(|error| LabError::file(&wish.out, &error))?;
    let folder = fresh_folder(&wish.out, &name)?;
    let program = turnpike_host::program_beside("turnpike");
    let more: &[String] = if wish.quick {
        &climb.get_ref().quick
    } else {
        &[]
    };
    let all = climb.get_ref().command.iter().chain(more);
    let words = climb_words(all, &program, &folder);
    let words = words.map_err(|error| loaded.source.mistake(climb, error.to_string()))?;
    let Some((first, rest)) = words.split_first() else {
        return Ok(());
    };
    println!("{}, into {}", words.join(" "), folder.display());
    let path = process::find(first).unwrap_or_else(|| first.into());
    // Its output, its exit status and Ctrl-C are as if it had been called itself.
    let error = Command::new(path).args(rest).exec();
    Err(LabError::step(
        "starting the climb",
        format!("{first}: {error}"),
    ))
}

/// The first option whose meaning is a case's.
fn foreign_option(wish: &SessionOptions) -> Option<&'static str> {
    let options = [
        ("--only", !wish.only.is_empty()),
        ("--resume", wish.resume),
        ("--repetitions", wish.repetitions.is_some()),
        ("--seconds", wish.seconds.is_some()),
        ("--topology", wish.topology.is_some()),
        ("--seed", wish.seed.is_some()),
    ];
    let mut given = options.into_iter().filter(|(_, is_given)| *is_given);
    given.next().map(|(name, _)| name)
}
