//! Makes the changes of a plan, undoes them, and says how things stand.
//!
//! Every change goes through the journal first. Undoing compares before it writes: what somebody
//! else has changed since stays as it is.

use std::io;
use std::path::Path;

use crate::change::Change;
use crate::facts::Facts;
use crate::journal::{Begin, Entry, Journal, Kind, Made, Part};
use crate::plan::{Kept, Plan, kept};
use crate::system::{System, partial};

/// What came of a step, or of undoing one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The change was made; from, to.
    Done { from: String, to: String },
    /// The step would be made.
    Would { from: String, to: String },
    /// Nothing had to be changed.
    Already,
    /// Not possible here, and why.
    Impossible(String),
    /// Put back to what it was.
    Restored,
    /// Changed since by another program or person; the present value.
    Changed(String),
    /// A start of the machine has put it back.
    Restarted(String),
    /// The value was changed in another network namespace, and cannot be reached from this one.
    OtherNetwork,
    /// Writing failed.
    Failed(String),
    /// The server was told to read its configuration again.
    Reloaded,
    /// The server does not run.
    NotRunning,
}

impl Outcome {
    /// Whether something is not as it was asked for.
    pub(crate) fn is_left(&self) -> bool {
        matches!(
            self,
            Outcome::Changed(_) | Outcome::Failed(_) | Outcome::OtherNetwork
        )
    }

    /// In words.
    pub(crate) fn text(&self) -> String {
        match self {
            Outcome::Done { from, to } => format!("{from} -> {to}, done"),
            Outcome::Would { from, to } => format!("{from} -> {to}"),
            Outcome::Already => "is so already".to_owned(),
            Outcome::Impossible(why) => format!("not possible here: {why}"),
            Outcome::Restored => "put back".to_owned(),
            Outcome::Changed(now) => format!("left: somebody else has changed it since, to {now}"),
            Outcome::Restarted(now) => {
                format!("left: a restart of the machine has set it to {now}")
            }
            Outcome::OtherNetwork => "left: it belongs to another network namespace".to_owned(),
            Outcome::Failed(why) => format!("failed: {why}"),
            Outcome::Reloaded => "the server was told to reload".to_owned(),
            Outcome::NotRunning => "the server does not run: nothing to reload".to_owned(),
        }
    }
}

/// A line of what was done.
pub(crate) type Line = (String, Outcome);

/// What a step writes.
struct Target {
    text: String,
    kind: Kind,
    path: String,
    value: String,
}

/// What of a plan would be done, or is left out.
pub(crate) fn preview(system: &System, facts: &Facts, plan: &Plan, keep: bool) -> Vec<Line> {
    let each = targets(facts, plan, keep)
        .into_iter()
        .map(|(text, target)| {
            let outcome = match target {
                Err(why) => Outcome::Impossible(why),
                Ok(target) => match look(system, &target) {
                    Ok((from, true)) => Outcome::Would {
                        from,
                        to: short(&target),
                    },
                    Ok((_, false)) => Outcome::Already,
                    Err(why) => Outcome::Impossible(why),
                },
            };
            (text, outcome)
        });
    each.collect()
}

/// Makes the changes of a plan.
///
/// # Errors
/// The journal cannot be written: nothing more is changed then.
pub(crate) fn apply(
    system: &System,
    facts: &Facts,
    plan: &Plan,
    keep: bool,
    journal: &mut Journal,
) -> io::Result<Vec<Line>> {
    journal.begin(begin(system, "apply"))?;
    let mut lines = Vec::new();
    for (text, target) in targets(facts, plan, keep) {
        let outcome = match target {
            Err(why) => Outcome::Impossible(why),
            Ok(target) => make(system, &target, journal)?,
        };
        lines.push((text, outcome));
    }
    journal.end()?;
    Ok(lines)
}

/// The beginning of a part of the journal: by whom, and now.
pub(crate) fn begin(system: &System, command: &str) -> Begin {
    let process = std::process::id();
    Begin {
        command: command.to_owned(),
        process,
        started: system.started(process),
        boot: system.boot(),
        network: system.network(),
        reload: None,
    }
}

/// Undoes every part, the last one first. All parts that could be undone are forgotten.
///
/// # Errors
/// The journal cannot be written.
pub(crate) fn revert(system: &System, journal: &mut Journal) -> io::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for index in (0..journal.parts.len()).rev() {
        lines.extend(undo(system, journal, index)?);
    }
    Ok(lines)
}

/// Undoes the last part if whoever wrote it died before its end.
///
/// # Errors
/// The journal cannot be written.
pub(crate) fn recover(system: &System, journal: &mut Journal) -> io::Result<Vec<Line>> {
    match journal.parts.last() {
        Some(part) if is_broken_off(system, part) => undo(system, journal, journal.parts.len() - 1),
        _ => Ok(Vec::new()),
    }
}

/// Whether a part's writer died before its end.
pub(crate) fn is_broken_off(system: &System, part: &Part) -> bool {
    let begin = &part.begin;
    let lives = !begin.started.is_empty()
        && begin.boot == system.boot()
        && system.started(begin.process) == begin.started;
    !part.is_ended && !part.is_undone && !lives
}

/// Undoes a part. Of changes of one file the first knows what was there before all of them, and any
/// may be the one that is in force.
///
/// # Errors
/// The journal cannot be written.
pub(crate) fn undo(system: &System, journal: &mut Journal, index: usize) -> io::Result<Vec<Line>> {
    let Some(part) = journal
        .parts
        .get(index)
        .filter(|part| !part.is_undone)
        .cloned()
    else {
        return Ok(Vec::new());
    };
    let mut lines = Vec::new();
    let mut has_failed = false;
    for changes in by_file(&part).into_iter().rev() {
        let outcome = put_back(system, &part.begin, &changes);
        has_failed |= matches!(outcome, Outcome::Failed(_) | Outcome::OtherNetwork);
        let entry = &changes[0].entry;
        if entry.kind != Kind::Folder {
            lines.push((entry.path.clone(), outcome));
        }
    }
    if let Some(server) = part.begin.reload.as_ref().filter(|_| !lines.is_empty()) {
        let is_told = system.reload(server);
        let outcome = if is_told {
            Outcome::Reloaded
        } else {
            Outcome::NotRunning
        };
        lines.push((server.pid_file.clone(), outcome));
    }
    // What could not be put back now is tried again by the next revert.
    if !has_failed {
        journal.undone(index)?;
    }
    Ok(lines)
}

/// The changes of a part by their files, in the order in which the files were first changed; none
/// of the lists is empty.
fn by_file(part: &Part) -> Vec<Vec<&Made>> {
    let mut files: Vec<Vec<&Made>> = Vec::new();
    for made in &part.changes {
        let is_its = |changes: &&mut Vec<&Made>| changes[0].entry.path == made.entry.path;
        match files.iter_mut().find(is_its) {
            Some(changes) => changes.push(made),
            None => files.push(vec![made]),
        }
    }
    files
}

/// Puts a file back that was changed one or several times.
fn put_back(system: &System, begin: &Begin, changes: &[&Made]) -> Outcome {
    let entry = &changes[0].entry;
    if entry.kind == Kind::Folder {
        system.remove_folder(&entry.path);
        return Outcome::Restored;
    }
    let restarted = begin.boot != system.boot();
    let is_network = entry.path.starts_with("/proc/sys/net/") || entry.path.starts_with("/sys/");
    if !restarted && is_network && begin.network != system.network() {
        return Outcome::OtherNetwork;
    }
    if entry.kind == Kind::Disk {
        // What a crash has left of a file that was being written.
        let _ = system.remove(&partial(&entry.path));
    }
    let current = match system.read(&entry.path) {
        Ok(current) => current,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let before = entry.before_bytes();
    if current == before {
        return Outcome::Restored;
    }
    let now = current.as_deref().map(turnpike_conf::text_of);
    let ours = now.as_ref().is_some_and(|now| is_of(changes, now));
    match (ours, restarted && entry.kind == Kind::Kernel) {
        (true, _) => match write(system, entry, before.as_deref()) {
            Ok(()) => Outcome::Restored,
            Err(error) => Outcome::Failed(error.to_string()),
        },
        (false, true) => Outcome::Restarted(shown(now.as_deref())),
        (false, false) => Outcome::Changed(shown(now.as_deref())),
    }
}

/// Makes a change in the open part of the journal, whose file the part may have changed before:
/// each entry says what was there before all of them, and is noted once.
///
/// # Errors
/// The journal or the file cannot be written.
pub(crate) fn change(system: &System, journal: &mut Journal, entry: &Entry) -> io::Result<()> {
    let part = journal.parts.last();
    let is_known = part.is_some_and(|part| part.changes.iter().any(|made| made.entry == *entry));
    if !is_known {
        journal.change(entry.clone())?;
    }
    write(system, entry, Some(&turnpike_conf::bytes_of(&entry.after)))?;
    if !is_known {
        let now = system.read(&entry.path)?.unwrap_or_default();
        journal.made(&now)?;
    }
    Ok(())
}

/// Whether one of these changes has made a file what it is now.
fn is_of(changes: &[&Made], now: &str) -> bool {
    let mut changes = changes.iter();
    changes.any(|made| {
        made.now.as_deref() == Some(now) || same(made.entry.kind, now, &made.entry.after)
    })
}

fn write(system: &System, entry: &Entry, before: Option<&[u8]>) -> io::Result<()> {
    match (entry.kind, before) {
        (Kind::Kernel, Some(bytes)) => system.write_kernel(&entry.path, bytes),
        (Kind::Disk, Some(bytes)) => system.write_disk(&entry.path, bytes),
        (_, None) => system.remove(&entry.path),
        (Kind::Folder, Some(_)) => Ok(()),
    }
}

/// How things stand with each change of a part.
pub(crate) fn standing(system: &System, part: &Part) -> Vec<(String, String)> {
    let files = by_file(part).into_iter();
    let files = files.filter(|changes| changes[0].entry.kind != Kind::Folder);
    let line = |changes: Vec<&Made>| {
        let entry = &changes[0].entry;
        let now = system.read(&entry.path).ok().flatten();
        let now = now.as_deref().map(turnpike_conf::text_of);
        let text = match &now {
            Some(now) if is_of(&changes, now) => "in force".to_owned(),
            now if *now == entry.before => "not in force: it is as it was before".to_owned(),
            now => format!(
                "changed by somebody else since, to {}",
                shown(now.as_deref())
            ),
        };
        let before = shown(entry.before.as_deref());
        let after = &changes[changes.len() - 1].entry.after;
        let after = match entry.kind {
            Kind::Kernel => format!("{before} -> {}, ", shown(Some(after))),
            Kind::Disk | Kind::Folder => String::new(),
        };
        (entry.path.clone(), format!("{after}{text}"))
    };
    files.map(line).collect()
}

/// What a plan writes, in order; or why a step cannot be done.
fn targets(facts: &Facts, plan: &Plan, keep: bool) -> Vec<(String, Result<Target, String>)> {
    let mut targets = Vec::new();
    let mut made: Vec<&Change> = Vec::new();
    for step in &plan.steps {
        let text = step.change.text();
        let target = match step.change.obstacle(facts) {
            Some(why) => Err(why),
            None => {
                made.push(&step.change);
                Ok(target(&step.change))
            }
        };
        targets.push((text, target));
    }
    let files = if keep {
        kept(made.into_iter())
    } else {
        Vec::new()
    };
    for Kept { path, text } in files {
        let target = Target {
            text: path.clone(),
            kind: Kind::Disk,
            path: path.clone(),
            value: text,
        };
        targets.push((path, Ok(target)));
    }
    targets
}

fn target(change: &Change) -> Target {
    let (kind, path, value) = change.file();
    Target {
        text: change.text(),
        kind,
        path,
        value,
    }
}

/// What the file holds now, and whether that has to be changed.
fn look(system: &System, target: &Target) -> Result<(String, bool), String> {
    let current = system
        .read(&target.path)
        .map_err(|error| error.to_string())?;
    let now = current.as_deref().map(turnpike_conf::text_of);
    match (&now, target.kind) {
        (None, Kind::Kernel) => Err(format!("there is no {} on this machine", target.path)),
        (Some(now), Kind::Disk) if !now.starts_with(crate::change::MARK) => Err(format!(
            "{} exists already and was not written by turnpike tune",
            target.path
        )),
        (now, kind) => {
            let is_so = now
                .as_ref()
                .is_some_and(|now| same(kind, now, &target.value));
            Ok((shown(now.as_deref()), !is_so))
        }
    }
}

fn make(system: &System, target: &Target, journal: &mut Journal) -> io::Result<Outcome> {
    let from = match look(system, target) {
        Err(why) => return Ok(Outcome::Impossible(why)),
        Ok((_, false)) => return Ok(Outcome::Already),
        Ok((from, true)) => from,
    };
    if target.kind == Kind::Disk {
        make_folders(system, &target.path, journal)?;
    }
    let before = system.read(&target.path)?;
    let entry = Entry::new(target.kind, &target.path, before.as_deref(), &target.value);
    journal.change(entry)?;
    let written = match target.kind {
        Kind::Kernel => system.write_kernel(&target.path, target.value.as_bytes()),
        Kind::Disk | Kind::Folder => system.write_disk(&target.path, target.value.as_bytes()),
    };
    let now = system.read(&target.path)?.unwrap_or_default();
    journal.made(&now)?;
    let now = turnpike_conf::text_of(&now);
    Ok(match written {
        Err(error) => Outcome::Failed(error.to_string()),
        Ok(()) if !same(target.kind, &now, &target.value) => {
            Outcome::Failed(format!("the kernel made {} of it", shown(Some(&now))))
        }
        Ok(()) => Outcome::Done {
            from,
            to: short(target),
        },
    })
}

/// Makes the folders above a file that are missing, the outermost first.
fn make_folders(system: &System, path: &str, journal: &mut Journal) -> io::Result<()> {
    let folders: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    for folder in folders.into_iter().rev() {
        let name = folder.display().to_string();
        if !system.path(&name).exists() {
            journal.change(Entry::new(Kind::Folder, &name, None, ""))?;
            std::fs::create_dir(system.path(&name))?;
        }
    }
    Ok(())
}

/// Whether what a file holds is what was written: the kernel writes numbers its own way.
fn same(kind: Kind, now: &str, written: &str) -> bool {
    let plain = |text: &str| -> Vec<String> {
        let words = text.split_whitespace();
        // Masks come back with leading zeros and commas.
        let bare = |word: &str| match word.trim_start_matches(['0', ',']) {
            "" => "0".to_owned(),
            bare => bare.to_owned(),
        };
        words.map(bare).collect()
    };
    match kind {
        Kind::Kernel => plain(now) == plain(written),
        Kind::Disk | Kind::Folder => now == written,
    }
}

/// A value for people, in a line.
fn shown(text: Option<&str>) -> String {
    let Some(text) = text else {
        return "nothing".to_owned();
    };
    let lines = text.trim_end().lines().count();
    if lines > 1 {
        format!("{lines} lines")
    } else {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn short(target: &Target) -> String {
    shown(Some(&target.value))
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
