//! What the server says to a configuration, and how one object's mistake is kept from all others:
//! the object whose line is refused is left out, and the rest is tried again.

use std::path::Path;
use std::process::Command;

use crate::findings::{Finding, Level};
use crate::objects::Objects;
use crate::options::Options;
use crate::render::{Rendering, Without, render_without};

/// The most rounds of leaving objects out. Each message of the server leaves one out, and a run has
/// up to a hundred messages.
const ROUNDS_MAX: usize = 100;

/// The most findings about one rendering that come of refusals.
const REFUSALS_MAX: usize = 10_000;

/// What the server says to a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// Messages, with the lines of the main file that they are about.
    Refused(Vec<(Option<usize>, String)>),
}

/// Asks the server: it reads the configuration and does not serve it.
///
/// # Errors
/// The program cannot be run.
pub fn judge(program: &Path, configuration: &Path) -> Result<Verdict, String> {
    let output = Command::new(program)
        .args(["-t", "-q", "-e", "stderr", "-c"])
        .arg(configuration)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(Verdict::Accepted);
    }
    let place = format!(" in {}:", configuration.display());
    let text = String::from_utf8_lossy(&output.stderr);
    let errors = text.lines().filter(|line| line.contains("[emerg]"));
    let messages = errors.map(|message| {
        let rest = message.rsplit_once(&place).map(|(_, rest)| rest);
        let digits = rest.map(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next());
        (
            digits.flatten().and_then(|digits| digits.parse().ok()),
            message.to_owned(),
        )
    });
    let messages: Vec<_> = messages.collect();
    if messages.is_empty() {
        Ok(Verdict::Refused(vec![(None, text.trim().to_owned())]))
    } else {
        Ok(Verdict::Refused(messages))
    }
}

/// Renders, asks, and leaves out what is refused, until the rest is accepted.
///
/// # Errors
/// The rendering or the question fails, or a line is refused that is no object's own.
pub fn settle(
    objects: &Objects,
    options: &Options,
    mut ask: impl FnMut(&Rendering) -> Result<Verdict, String>,
) -> Result<Rendering, String> {
    let mut without = Without::default();
    let mut refusals: Vec<Finding> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut rendering = render_without(objects, options, &without)?;
        let messages = match ask(&rendering)? {
            Verdict::Accepted => {
                rendering.findings.extend(refusals);
                rendering.findings.sort();
                return Ok(rendering);
            }
            Verdict::Refused(messages) => messages,
        };
        let before = without.objects.len();
        for (line, message) in &messages {
            let owner = line.and_then(|line| rendering.owner(line));
            let Some(owner) = owner else {
                continue;
            };
            if without.objects.insert(owner.clone()) && refusals.len() < REFUSALS_MAX {
                refusals.push(Finding {
                    subject: owner.clone(),
                    level: Level::LeftOut,
                    text: format!("the server refuses it: {message}"),
                    awaits_other: false,
                });
            }
        }
        if without.objects.len() == before {
            let texts: Vec<&str> = messages.iter().map(|(_, text)| text.as_str()).collect();
            return Err(texts.join("\n"));
        }
    }
    Err(format!(
        "objects are still refused after {ROUNDS_MAX} rounds"
    ))
}
