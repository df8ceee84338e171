//! The folder of a run's results: found or created, with its first files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Session, SessionOptions};
use crate::error::LabError;
use crate::matrix::Case;
use crate::record;
use crate::summary::{Header, Summary};

/// One line a run.
pub(crate) const RAW: &str = "raw.csv";
/// The header, and at the end everything.
pub(crate) const SUMMARY: &str = "summary.json";

/// Runs of one study on one day; more are not one day's work.
const SAME_DAY_MAX: u32 = 1000;

/// The folder to write to: a fresh one, or with `--resume` the last one of this study.
///
/// # Errors
/// There is none to go on with.
pub(super) fn folder(header: &Header, wish: &SessionOptions) -> Result<PathBuf, LabError> {
    if wish.resume {
        return last(header, wish);
    }
    let name = format!("{}-{}-{}", header.date, header.study, header.machine);
    fresh_folder(&wish.out, &name)
}

/// A folder of this name that is not there yet: with a number, if others are.
///
/// # Errors
/// There are too many.
pub(crate) fn fresh_folder(out: &Path, name: &str) -> Result<PathBuf, LabError> {
    let fresh = (1..SAME_DAY_MAX)
        .map(|count| match count {
            1 => out.join(name),
            _ => out.join(format!("{name}-{count}")),
        })
        .find(|path| !path.exists());
    fresh.ok_or_else(|| LabError::step("making the folder of results", "too many on one day"))
}

fn last(header: &Header, wish: &SessionOptions) -> Result<PathBuf, LabError> {
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(&wish.out)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let known = read_header(&entry.path()).ok()?;
            let changed = std::fs::metadata(entry.path().join(SUMMARY))
                .ok()?
                .modified()
                .ok()?;
            let is_same = known.study == header.study && known.quick == header.quick;
            is_same.then(|| (changed, entry.path()))
        })
        .collect();
    found.sort();
    let folder = found.pop().map(|(_, path)| path);
    folder.ok_or_else(|| {
        let text = format!("no run of {} in {}", header.study, wish.out.display());
        LabError::step("--resume", text)
    })
}

/// Makes the folder and its first files, or reads what was done before.
///
/// # Errors
/// The folder's, or a run that was of something else.
pub(super) fn open(
    folder: &Path,
    header: &mut Header,
    session: &Session,
    resume: bool,
) -> Result<BTreeSet<(u32, Case)>, LabError> {
    let raw = folder.join(RAW);
    if !resume {
        std::fs::create_dir_all(folder).map_err(|error| LabError::file(folder, &error))?;
        let names: Vec<String> = session
            .dimensions
            .iter()
            .map(|dimension| dimension.name.clone())
            .collect();
        record::append(&raw, &record::header(&names))?;
        write_header(folder, header)?;
        return Ok(BTreeSet::new());
    }
    let known = read_header(folder)?;
    if known.study_text != header.study_text || known.seed != header.seed {
        let text = format!("{} is of another version of the study", folder.display());
        return Err(LabError::step("--resume", text));
    }
    if known.machine != header.machine || known.seconds != header.seconds {
        let text = format!(
            "{} is of another machine or of other seconds",
            folder.display()
        );
        return Err(LabError::step("--resume", text));
    }
    header.contenders = known.contenders;
    header.date = known.date;
    record::mend(&raw)?;
    let runs = record::read(&raw)?;
    Ok(runs.into_iter().map(|run| (run.round, run.case)).collect())
}

/// Writes only the header, which an aborted run leaves.
///
/// # Errors
/// The file's error.
pub(super) fn write_header(folder: &Path, header: &Header) -> Result<(), LabError> {
    let path = folder.join(SUMMARY);
    let text = serde_json::to_string_pretty(&serde_json::json!({ "header": header }))
        .map_err(|error| LabError::step("writing the summary", error))?;
    replace(&path, &(text + "\n"))
}

/// Replaces a file completely or keeps the old one, even on a full disk.
///
/// # Errors
/// The file's error.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), LabError> {
    let fresh = path.with_extension("new");
    let written = std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&fresh);
        LabError::file(path, &error)
    })
}

/// Reads a run's header.
///
/// # Errors
/// The file's, or it is none of ours.
pub(super) fn read_header(folder: &Path) -> Result<Header, LabError> {
    /// The part that every summary has.
    #[derive(serde::Deserialize)]
    struct Head {
        header: Header,
    }
    let path = folder.join(SUMMARY);
    let text = std::fs::read_to_string(&path).map_err(|error| LabError::file(&path, &error))?;
    let head: Head = serde_json::from_str(&text).map_err(|error| LabError::File {
        name: path.display().to_string(),
        text: format!("not a summary of the lab's: {error}"),
    })?;
    Ok(head.header)
}

/// Writes everything.
///
/// # Errors
/// The file's.
pub(crate) fn write_summary(folder: &Path, summary: &Summary) -> Result<(), LabError> {
    let path = folder.join(SUMMARY);
    let text = serde_json::to_string_pretty(summary)
        .map_err(|error| LabError::step("writing the summary", error))?;
    replace(&path, &(text + "\n"))
}
