//! The check of a study: every used name exists, and every template can be filled for every case.
//! It starts no process and does not use the machine.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Spanned;

use super::Source;
use super::climb::climb_words;
use super::library::{program, program_names};
use super::model::{Contender, Count, Drive, PlotKind, Selection, Selector, Study};
use crate::error::LabError;
use crate::files::{self, FILE_BYTES_MAX, FileContent, LINES_MAX};
use crate::matrix::{self, CONTENDER, Choice, Dimension};
use crate::metric;
use crate::session::values::{self, Place};
use crate::template;

/// Topologies that a study may name.
pub(crate) const TOPOLOGIES: &[&str] = &["loopback", "netns"];

/// Drivers that a study may name.
pub(crate) const DRIVERS: &[&str] = &["load", "wrk", "ab", "command"];

/// Drivers that can send a given number of requests.
const COUNTING_DRIVERS: &[&str] = &["load", "ab"];

/// CPUs that templates are tried for.
const TRIED_CPUS: usize = 4;

/// Checks everything.
///
/// # Errors
/// The first mistake, with FILE:LINE.
pub(super) fn check(study: &Study, source: &Source) -> Result<(), LabError> {
    climbing(study, source)?;
    if study.contender.is_empty() {
        return data(study, source);
    }
    run(study, source)?;
    unique(
        source,
        "configuration",
        study.configuration.iter().map(|row| &row.name),
    )?;
    unique(
        source,
        "contender",
        study.contender.iter().map(|row| &row.name),
    )?;
    unique(source, "factor", study.factor.iter().map(|row| &row.name))?;
    for contender in &study.contender {
        parts(study, source, contender)?;
    }
    factors(study, source)?;
    file_contents(study, source)?;
    let dimensions = matrix::dimensions(study, TRIED_CPUS);
    selectors(study, source, &dimensions)?;
    metrics(study, source)?;
    templates(study, source, &dimensions)
}

/// A study without contenders is data.
fn data(study: &Study, source: &Source) -> Result<(), LabError> {
    let is_empty = study.ladder.is_empty() && study.published.is_empty();
    if is_empty || !study.factor.is_empty() || !study.claim.is_empty() {
        Err(source.mistake(&study.name, "a study needs a [[contender]]"))
    } else {
        Ok(())
    }
}

fn climbing(study: &Study, source: &Source) -> Result<(), LabError> {
    let Some(table) = &study.climb else {
        return Ok(());
    };
    let is_whole = !table.get_ref().command.is_empty();
    if !is_whole || study.ladder.is_empty() || !study.contender.is_empty() {
        let text = "a [climb] has a command, and belongs to a [[ladder]] without contenders";
        return Err(source.mistake(table, text));
    }
    let all = table.get_ref().command.iter().chain(&table.get_ref().quick);
    let words = climb_words(all, Path::new("turnpike"), Path::new("/tmp"));
    let wrong = |error: template::TemplateError| source.mistake(table, error.to_string());
    words.map(drop).map_err(wrong)
}

fn run(study: &Study, source: &Source) -> Result<(), LabError> {
    let run = &study.run;
    one_of(source, "topology", &run.topology, TOPOLOGIES)?;
    let times = [run.seconds, run.quick.seconds];
    if times
        .iter()
        .any(|seconds| !(0.1..=86400.0).contains(seconds))
    {
        return Err(source.mistake(&study.name, "seconds must be from 0.1 to 86400"));
    }
    if run.repetitions == 0 || run.quick.repetitions == 0 {
        return Err(source.mistake(&study.name, "repetitions must be at least 1"));
    }
    let Some(drive) = &study.drive else {
        return Err(source.mistake(&study.name, "a study with contenders needs a [drive]"));
    };
    if study.placement.is_none() {
        return Err(source.mistake(&study.name, "a study with contenders needs a [placement]"));
    }
    let levels = study.factor.iter().flat_map(|factor| &factor.levels);
    let of_levels = levels.filter_map(|level| level.drive.as_ref());
    for drive in std::iter::once(drive.get_ref()).chain(of_levels) {
        one_of(source, "driver", &drive.program, DRIVERS)?;
        if !drive.is_whole() {
            let text = "program = \"command\" and a command belong together";
            return Err(source.mistake(&drive.program, text));
        }
    }
    if let Some(count) = &study.count {
        let program = &count.get_ref().program;
        one_of(source, "counting driver", program, COUNTING_DRIVERS)?;
        if count.get_ref().requests == 0 {
            return Err(source.mistake(count, "requests must be at least 1"));
        }
    }
    Ok(())
}

fn one_of(
    source: &Source,
    what: &str,
    name: &Spanned<String>,
    known: &[&str],
) -> Result<(), LabError> {
    if known.contains(&name.get_ref().as_str()) {
        Ok(())
    } else {
        let text = format!(
            "unknown {what} \"{}\", there are {}",
            name.get_ref(),
            known.join(", ")
        );
        Err(source.mistake(name, text))
    }
}

fn unique<'a>(
    source: &Source,
    what: &str,
    names: impl Iterator<Item = &'a Spanned<String>>,
) -> Result<(), LabError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            return Err(source.mistake(name, format!("duplicate {what} \"{}\"", name.get_ref())));
        }
    }
    Ok(())
}

fn parts(study: &Study, source: &Source, contender: &Contender) -> Result<(), LabError> {
    let origin = contender.origin.as_ref();
    let programs = [
        Some(&contender.program),
        origin.map(|origin| &origin.program),
    ];
    for name in programs.into_iter().flatten() {
        if !study.program.contains_key(name.get_ref()) && program(name.get_ref()).is_none() {
            let known: Vec<String> = study
                .program
                .keys()
                .cloned()
                .chain(program_names())
                .collect();
            let known = known.join(", ");
            let text = format!("unknown program \"{}\", there are {known}", name.get_ref());
            return Err(source.mistake(name, text));
        }
    }
    let configurations = [
        contender.configuration.as_ref(),
        origin.map(|origin| &origin.configuration),
    ];
    for name in configurations.into_iter().flatten() {
        if study.configuration(name.get_ref()).is_none() {
            let text = format!("no [[configuration]] is called \"{}\"", name.get_ref());
            return Err(source.mistake(name, text));
        }
    }
    Ok(())
}

fn factors(study: &Study, source: &Source) -> Result<(), LabError> {
    for factor in &study.factor {
        if factor.name.get_ref() == CONTENDER {
            return Err(source.mistake(&factor.name, "\"contender\" is a dimension already"));
        }
        unique(source, "level", factor.level_names())?;
        match &factor.scale {
            Some(scale) => one_of(source, "scale", scale, &["cpus"])?,
            None if factor.level_names().next().is_none() => {
                return Err(source.mistake(&factor.name, "a factor needs levels or a scale"));
            }
            None => (),
        }
        for quick in factor.quick.iter().flatten() {
            let names = factor.level_names().map(|name| name.get_ref().as_str());
            let known: Vec<&str> = names.collect();
            one_of(source, "level", quick, &known)?;
        }
    }
    Ok(())
}

/// The sizes of files are within their limits, and their paths lead into the contender's folder.
fn file_contents(study: &Study, source: &Source) -> Result<(), LabError> {
    for (name, content) in &study.files {
        let path = Path::new(name.get_ref());
        let is_inside = path
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        let text = match content {
            _ if !is_inside => "a file's path must be relative, without \"..\"".to_owned(),
            FileContent::Lines { lines, .. } if *lines > LINES_MAX => {
                format!("a file has at most {LINES_MAX} lines")
            }
            FileContent::Command { command } if command.is_empty() => {
                "a file's command has no words".to_owned()
            }
            FileContent::Bytes(bytes) | FileContent::Words { words_bytes: bytes }
                if *bytes > FILE_BYTES_MAX =>
            {
                format!("a file has at most {FILE_BYTES_MAX} bytes")
            }
            _ => continue,
        };
        return Err(source.mistake(name, text));
    }
    Ok(())
}

fn selectors(study: &Study, source: &Source, dimensions: &[Dimension]) -> Result<(), LabError> {
    let mut all: Vec<&Selector> = Vec::new();
    all.extend(study.without.iter().map(|without| &without.at));
    for claim in &study.claim {
        all.extend([&claim.of, &claim.against, &claim.at]);
    }
    all.extend(study.plot.iter().map(|plot| &plot.at));
    for published in &study.published {
        all.push(&published.at);
        all.extend(published.row.iter().filter_map(|row| row.at.as_ref()));
    }
    for goal in &study.goal {
        all.extend([&goal.of, &goal.against]);
    }
    for selector in all {
        for (name, level) in selector {
            selected(study, source, dimensions, name, level)?;
        }
    }
    let mut selections: Vec<&Selection> = study.goal.iter().map(|goal| &goal.at).collect();
    selections.extend(study.count.iter().map(|count| &count.get_ref().at));
    selections.extend(study.contender.iter().map(|contender| &contender.only));
    for (name, levels) in selections.into_iter().flatten() {
        for level in levels {
            selected(study, source, dimensions, name, level)?;
        }
    }
    Ok(())
}

fn selected(
    study: &Study,
    source: &Source,
    dimensions: &[Dimension],
    name: &Spanned<String>,
    level: &Spanned<String>,
) -> Result<(), LabError> {
    let names: Vec<&str> = dimensions
        .iter()
        .map(|dimension| dimension.name.as_str())
        .collect();
    one_of(source, "dimension", name, &names)?;
    let scaled = study
        .factor
        .iter()
        .any(|factor| factor.name.get_ref() == name.get_ref() && factor.scale.is_some());
    let levels: Vec<&str> = dimensions
        .iter()
        .filter(|dimension| &dimension.name == name.get_ref())
        .flat_map(|dimension| &dimension.levels)
        .map(|level| level.name.as_str())
        .collect();
    if scaled {
        // How far the scale goes is the machine's.
        Ok(())
    } else {
        one_of(
            source,
            &format!("level of {}", name.get_ref()),
            level,
            &levels,
        )
    }
}

fn metrics(study: &Study, source: &Source) -> Result<(), LabError> {
    let mut names: Vec<&Spanned<String>> = study.claim.iter().map(|claim| &claim.metric).collect();
    names.extend(study.goal.iter().map(|goal| &goal.metric));
    names.extend(study.plot.iter().filter_map(|plot| plot.metric.as_ref()));
    for published in &study.published {
        names.extend(published.row.iter().flat_map(|row| row.figures.keys()));
    }
    for name in names {
        if metric::find(name.get_ref()).is_none() {
            return Err(source.mistake(name, format!("unknown metric \"{}\"", name.get_ref())));
        }
    }
    for plot in &study.plot {
        let needs = matches!(plot.kind, PlotKind::Bars | PlotKind::Scaling);
        if needs && plot.metric.is_none() {
            let text = format!("the plot \"{}\" needs a metric", plot.title);
            return Err(source.mistake(&study.name, text));
        }
    }
    Ok(())
}

/// Every template of every case can be filled in.
fn templates(study: &Study, source: &Source, dimensions: &[Dimension]) -> Result<(), LabError> {
    let cases = matrix::cases(study, dimensions, &Choice::default());
    if cases.is_empty() {
        return Err(source.mistake(&study.name, "no case is left"));
    }
    let place = Place::tried();
    for case in &cases {
        let Some(contender) = study.contender(case) else {
            continue;
        };
        let filled = values::of_case(study, dimensions, case, &place)
            .map_err(|error| source.mistake(&contender.name, error.to_string()))?;
        if let Some(name) = &contender.configuration {
            configuration(study, source, name, &filled)?;
        }
        if let Some(origin) = &contender.origin {
            let filled = values::of_origin(&filled, origin)
                .map_err(|error| source.mistake(&origin.program, error.to_string()))?;
            configuration(study, source, &origin.configuration, &filled)?;
        }
        for (name, content) in &study.files {
            if let FileContent::Lines { text, .. } = content {
                files::repeated(1, text, &filled)
                    .map_err(|error| source.mistake(name, error.to_string()))?;
            }
        }
        if let Some((drive, of_levels)) = matrix::drive(study, dimensions, case) {
            let mut filled = filled;
            filled.insert("seconds".to_owned(), String::new());
            driver_words(study, source, (drive, &of_levels), &filled)?;
        }
    }
    Ok(())
}

/// The words for the driver can be filled in.
fn driver_words(
    study: &Study,
    source: &Source,
    (drive, of_levels): (&Drive, &[String]),
    values: &template::Values,
) -> Result<(), LabError> {
    let Drive {
        program,
        arguments,
        command,
    } = drive;
    let mut words: Vec<(&Spanned<String>, &String)> = Vec::new();
    let of_drive = of_levels.iter().chain(arguments).chain(command);
    words.extend(of_drive.map(|word| (program, word)));
    if let Some(count) = &study.count {
        let Count {
            program, arguments, ..
        } = count.get_ref();
        words.extend(arguments.iter().map(|word| (program, word)));
    }
    for (program, word) in words {
        template::fill(word, values).map_err(|error| source.mistake(program, error.to_string()))?;
    }
    Ok(())
}

fn configuration(
    study: &Study,
    source: &Source,
    name: &Spanned<String>,
    values: &template::Values,
) -> Result<(), LabError> {
    let Some(text) = study.configuration(name.get_ref()) else {
        return Ok(());
    };
    template::fill(text.get_ref(), values).map_err(|error| {
        // A multi-line string begins after its quotes and line end, as it stands in the file.
        let start = text.span().start + 4 + error.offset();
        source.mistake(&Spanned::new(start..start, ()), error.to_string())
    })?;
    Ok(())
}
