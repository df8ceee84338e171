//! What a run's reader gets: README.md in plain words, report.html with pictures, summary.json for
//! programs. All of them are made from raw.csv and the study, and can be made again.

mod goals;
mod html;
mod markdown;
mod picture;
mod words;

pub(crate) use words::counted;

use std::path::Path;

use crate::error::LabError;
use crate::matrix::{self, Choice};
use crate::record::Run;
use crate::session;
use crate::study::{self, Loaded};
use crate::summary::{self, Header};

/// Writes everything into the run's folder; returns the table of goals for a terminal.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn write(
    folder: &Path,
    header: Header,
    loaded: &Loaded,
    runs: &[Run],
) -> Result<String, LabError> {
    let study = &loaded.study;
    let dimensions = matrix::dimensions(study, header.cpus);
    let choice = Choice {
        quick: header.quick,
        only: header.only.clone(),
    };
    let mut cases = matrix::cases(study, &dimensions, &choice);
    // A contender that was left out has no runs, and is not planned either.
    let is_out = |case: &matrix::Case| {
        header.notes.iter().any(|note| {
            let name = case.level(matrix::CONTENDER).unwrap_or_default();
            note.starts_with(&format!("{name} is left out"))
        })
    };
    cases.retain(|case| !is_out(case));
    let summary = summary::sum_up(header, study, &dimensions, &cases, runs);
    session::write_summary(folder, &summary)?;
    let page = html::page(study, &dimensions, &summary, runs);
    let page = page.map_err(|error| LabError::step("report", error))?;
    let files = [
        ("README.md", markdown::page(study, &dimensions, &summary)),
        ("report.html", page),
    ];
    for (name, text) in files {
        session::replace(&folder.join(name), &text)?;
    }
    Ok(goals::text(&summary))
}

/// The page of a comparison of two runs of a study.
///
/// # Errors
/// The page cannot be made.
pub(crate) fn comparison<const COLUMNS: usize>(
    study: &str,
    notes: &[String],
    head: &[&str; COLUMNS],
    rows: &[[String; COLUMNS]],
) -> Result<String, LabError> {
    let table = words::Table {
        head: head.iter().map(|&name| name.to_owned()).collect(),
        rows: rows.iter().map(|row| row.to_vec()).collect(),
    };
    html::comparison(study, notes, &table).map_err(|error| LabError::step("compare", error))
}

/// Writes the report of a run again.
///
/// # Errors
/// The folder is no run, or cannot be written to.
pub(crate) fn again(folder: &Path) -> Result<(), LabError> {
    let (header, runs) = session::read_results(folder)?;
    let loaded = study::parse(&header.study_file, &header.study_text)?;
    print!("{}", write(folder, header, &loaded, &runs)?);
    println!("{}", folder.join("report.html").display());
    Ok(())
}

#[cfg(test)]
mod tests;
