//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Context, Entry, View};
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::Template;

use super::handler::{Around, Commands, Goto};

/// Another location answers.
const EXEC: &str = "echo_exec";

/// The directives that are commands, carried out in the order in which they stand.
const COMMANDS: [&str; 8] = [
    "echo",
    "echo_duplicate",
    "echo_flush",
    "echo_sleep",
    "echo_location",
    "echo_location_async",
    "echo_read_request_body",
    "echo_request_body",
];

/// Strings that make a line, or, with `-n`, a text.
pub(super) struct Line {
    pub(super) words: Vec<Template>,
    pub(super) has_end: bool,
}

/// A command.
pub(super) enum Command {
    Line(Line),
    /// Count and string.
    Copies(Template, Template),
    Flush,
    /// Seconds.
    Sleep(Template),
    /// Path and query.
    Location(Template, Option<Template>),
    ReadBody,
    Body,
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let mut lines = |name: &str| -> Result<Vec<Line>, ConfError> {
        let entries = view.own_all(name);
        let lines = entries.map(|entry| placed(view, entry, line(entry, builder)));
        lines.collect()
    };
    let around = Around {
        before: lines("echo_before_body")?.into(),
        after: lines("echo_after_body")?.into(),
    };
    if !around.is_empty() {
        draft.add_filter(FilterPlace::Add, Arc::new(around));
    }
    let mut level = view;
    let mut entries = view.own_of(&COMMANDS);
    let is_own = !entries.is_empty() || view.own(EXEC).is_some();
    if !is_own && view.context() == Context::IfInLocation {
        level = view.parent().unwrap_or(view);
        entries = level.own_of(&COMMANDS);
    }
    if let Some(entry) = level.own(EXEC) {
        let target = placed(view, entry, target(entry, builder))?;
        draft.set_content(Arc::new(Goto(target.0, target.1)), is_own);
        return Ok(());
    }
    let entries = entries.into_iter();
    let commands = entries.map(|entry| placed(view, entry, command(entry, builder)));
    let commands: Vec<Command> = commands.collect::<Result<_, _>>()?;
    if !commands.is_empty() {
        let status = u16::try_from(view.number("echo_status")).unwrap_or(200);
        let commands = commands.into();
        draft.set_content(Arc::new(Commands { status, commands }), is_own);
    }
    Ok(())
}

fn placed<T>(view: View<'_>, entry: &Entry, read: Result<T, Complaint>) -> Result<T, ConfError> {
    read.map_err(|message| view.error(entry.span, message))
}

fn template(entry: &Entry, index: usize, builder: &mut Builder<'_>) -> Result<Template, Complaint> {
    let word = entry.arguments.get(index);
    let text = word.map(|word| word.bytes()).unwrap_or_default();
    Ok(Template::compile(&text, &mut builder.variables)?)
}

fn target(
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<(Template, Option<Template>), Complaint> {
    let query = match entry.arguments.len() {
        2 => Some(template(entry, 1, builder)?),
        _ => None,
    };
    Ok((template(entry, 0, builder)?, query))
}

/// Options stand in front of the strings, and end with the first word that is none.
fn line(entry: &Entry, builder: &mut Builder<'_>) -> Result<Line, Complaint> {
    let (mut first, mut has_end) = (0, true);
    for word in entry.arguments.iter() {
        match word.text.as_str() {
            "-n" => has_end = false,
            "--" => {
                first += 1;
                break;
            }
            _ => break,
        }
        first += 1;
    }
    let words = (first..entry.arguments.len()).map(|index| template(entry, index, builder));
    Ok(Line {
        words: words.collect::<Result<_, _>>()?,
        has_end,
    })
}

fn command(entry: &Entry, builder: &mut Builder<'_>) -> Result<Command, Complaint> {
    Ok(match entry.row.name {
        "echo_duplicate" => {
            let count = template(entry, 0, builder)?;
            Command::Copies(count, template(entry, 1, builder)?)
        }
        "echo_flush" => Command::Flush,
        "echo_sleep" => Command::Sleep(template(entry, 0, builder)?),
        "echo_location" | "echo_location_async" => {
            let (path, query) = target(entry, builder)?;
            Command::Location(path, query)
        }
        "echo_read_request_body" => Command::ReadBody,
        "echo_request_body" => Command::Body,
        _ => Command::Line(line(entry, builder)?),
    })
}
