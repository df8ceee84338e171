//! What was found in a configuration, a row a directive, as a table and as JSON.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::json;
use turnpike_conf::{ConfError, Context, Directive, Registry, Row, Tree};

use super::has_effect;
use crate::families::{self, advice};
use crate::paths::Paths;

/// Columns of a line: the advice is broken into lines of this width.
const WIDTH_MAX: usize = 100;
/// Fewest columns for the advice: with fewer, too few words stand in a line.
const TEXT_WIDTH_MIN: usize = 40;
/// Most places that a table names for one directive; JSON has all of them.
const PLACES_SHOWN_MAX: usize = 3;

/// What becomes of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// nginx knows it, and it is not done yet.
    Refused,
    /// A directive of a module that nginx does not have by itself, or a typing mistake.
    Unknown,
    /// Wrong in nginx too.
    Mistake,
    /// Something that it needs is not on this machine, or not for this user.
    Machine,
    /// Checked, and changes nothing.
    NoEffect,
    /// Worth a look, though all works.
    Warning,
}

impl State {
    const ALL: [State; 6] = [
        State::Refused,
        State::Unknown,
        State::Mistake,
        State::Machine,
        State::NoEffect,
        State::Warning,
    ];

    fn text(self) -> &'static str {
        match self {
            State::Refused => "refused",
            State::Unknown => "unknown",
            State::Mistake => "mistake",
            State::Machine => "machine",
            State::NoEffect => "no effect",
            State::Warning => "warning",
        }
    }

    fn title(self) -> &'static str {
        match self {
            State::Refused => "Refused: nginx has these, and the server does not start with them",
            State::Unknown => "Unknown: nginx itself does not have these either",
            State::Mistake => "Mistakes: these are wrong in nginx too",
            State::Machine => {
                "On this machine: the server cannot start here, as this user, with these"
            }
            State::NoEffect => "No effect: these are checked and change nothing here",
            State::Warning => "Warnings",
        }
    }

    fn stops_start(self) -> bool {
        matches!(
            self,
            State::Refused | State::Unknown | State::Mistake | State::Machine
        )
    }
}

/// One row of the report.
#[derive(Clone, Debug)]
struct Finding {
    state: State,
    /// The directive, with the parameter that matters.
    name: String,
    /// `FILE:LINE`, in reading order.
    places: Vec<String>,
    /// What to know and what to do.
    text: String,
}

/// What is to be said of a configuration.
#[derive(Debug)]
pub(super) struct Report {
    file: String,
    files: usize,
    directives: usize,
    works: usize,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(
        paths: &Paths,
        tree: &Tree,
        errors: &[ConfError],
        warnings: Vec<String>,
        failures: Vec<String>,
    ) -> Report {
        let mut report = Report {
            file: paths.name(),
            files: tree.sources.iter().count(),
            directives: 0,
            works: 0,
            findings: Vec::new(),
        };
        let refused = errors.iter().filter_map(|error| error.place.clone());
        let mut walk = Walk {
            tree,
            registry: families::registry(),
            refused: refused.collect(),
            report: &mut report,
        };
        walk.directives(&tree.directives, Context::Main);
        for error in errors {
            report.error(error);
        }
        for text in failures {
            report.add(State::Machine, "", None, sentence(&text));
        }
        for text in warnings {
            report.add(State::Warning, "", None, text);
        }
        report
    }

    /// Whether the server can start with it.
    pub(super) fn loads(&self) -> bool {
        !self.findings.iter().any(|one| one.state.stops_start())
    }

    fn error(&mut self, error: &ConfError) {
        let said = format!("{}{}", error.message, error.hint);
        let (state, name) = classify(&said);
        let is_of_directive = matches!(state, State::Refused | State::Unknown);
        let known = advice::find(&name).filter(|_| is_of_directive);
        let text = match known {
            Some(advice) => format!("{}. {}", advice.module, advice.instead),
            None if !is_of_directive => sentence(&said),
            // It says what to do itself.
            None if said.contains("; ") || said.ends_with('?') => sentence(&said),
            None => format!("{}. Remove the line.", sentence(&said)),
        };
        let place = error.place.as_ref();
        self.add(
            state,
            &name,
            place.map(|(file, line)| format!("{file}:{line}")),
            text,
        );
    }

    fn add(&mut self, state: State, name: &str, place: Option<String>, text: String) {
        let same = self
            .findings
            .iter_mut()
            .find(|one| one.state == state && one.name == name && one.text == text);
        match same {
            Some(finding) => finding.places.extend(place),
            None => self.findings.push(Finding {
                state,
                name: name.to_owned(),
                places: place.into_iter().collect(),
                text,
            }),
        }
    }

    /// The report for a terminal.
    pub(super) fn table(&self) -> String {
        let (file, files, directives) = (&self.file, self.files, self.directives);
        let mut out = format!("{file}: {}", count(files, "file"));
        let _ = writeln!(out, ", {}\n", count(directives, "directive"));
        let _ = writeln!(out, "{:<10}{:>6}", "works", self.works);
        for state in State::ALL {
            let of_state = self.findings.iter().filter(|one| one.state == state);
            let sum: usize = of_state.map(|one| one.places.len().max(1)).sum();
            if sum > 0 {
                let _ = writeln!(out, "{:<10}{sum:>6}", state.text());
            }
        }
        for state in State::ALL {
            self.section(state, &mut out);
        }
        let mut states = self.findings.iter().map(|one| one.state);
        let is_wrong = states.any(|state| state.stops_start() && state != State::Machine);
        let verdict = match (self.loads(), is_wrong) {
            (true, _) => "The server can start with this file.",
            (false, false) => "The server does not start with this file on this machine.",
            (false, true) => "The server does not start with this file.",
        };
        let _ = writeln!(out, "\n{verdict}");
        out
    }

    fn section(&self, state: State, out: &mut String) {
        let rows: Vec<(&str, String, &str)> = self
            .findings
            .iter()
            .filter(|one| one.state == state)
            .map(|one| (one.name.as_str(), self.shown_places(one), one.text.as_str()))
            .collect();
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n{}\n", state.title());
        let width = |text: fn(&(&str, String, &str)) -> usize| rows.iter().map(text).max();
        let names = width(|row| row.0.chars().count()).unwrap_or_default();
        let places = width(|row| row.1.chars().count()).unwrap_or_default();
        let gaps = [names, places].into_iter().filter(|width| *width > 0);
        let indent = 2 + gaps.map(|width| width + 2).sum::<usize>();
        let room = WIDTH_MAX.saturating_sub(indent).max(TEXT_WIDTH_MIN);
        for (name, at, text) in rows {
            let mut start = " ".repeat(2);
            for (cell, width) in [(name, names), (at.as_str(), places)] {
                if width > 0 {
                    let _ = write!(start, "{cell:<width$}  ");
                }
            }
            for line in broken(text, room) {
                let _ = writeln!(out, "{}", format!("{start}{line}").trim_end());
                start = " ".repeat(indent);
            }
        }
    }

    /// The first places, without the folder of the main file.
    fn shown_places(&self, finding: &Finding) -> String {
        let folder = self.file.rfind('/').map_or("", |end| &self.file[..=end]);
        let shown = finding.places.iter().take(PLACES_SHOWN_MAX);
        let shown: Vec<&str> = shown
            .map(|place| place.strip_prefix(folder).unwrap_or(place))
            .collect();
        let more = finding.places.len().saturating_sub(PLACES_SHOWN_MAX);
        match more {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }

    /// The report for programs.
    pub(super) fn json(&self) -> String {
        let findings = self.findings.iter().map(|one| {
            json!({
                "state": one.state.text(),
                "directive": one.name,
                "places": one.places,
                "text": one.text,
            })
        });
        let report = json!({
            "file": self.file,
            "files": self.files,
            "directives": self.directives,
            "works": self.works,
            "loads": self.loads(),
            "findings": findings.collect::<Vec<_>>(),
        });
        format!("{report}\n")
    }
}

/// Counts directives, and notes those without effect.
struct Walk<'a> {
    tree: &'a Tree,
    registry: Registry,
    refused: HashSet<(String, u32)>,
    report: &'a mut Report,
}

impl Walk<'_> {
    fn directives(&mut self, directives: &[Directive], context: Context) {
        for directive in directives {
            self.report.directives += 1;
            let name = directive.name.text.as_str();
            let Some(row) = self.registry.row(name, context) else {
                continue;
            };
            let file = self.tree.sources.name(directive.span.file);
            let place = (file.unwrap_or_default().to_owned(), directive.span.line);
            if !self.refused.contains(&place) {
                self.accepted(row, &place);
            }
            if let (turnpike_conf::Value::Block(inner), Some(inside)) =
                (row.value, &directive.block)
            {
                self.directives(inside, inner);
            }
        }
    }

    fn accepted(&mut self, row: &Row, place: &(String, u32)) {
        if has_effect(row) {
            self.report.works += 1;
            return;
        }
        let (file, line) = place;
        let (place, text) = (format!("{file}:{line}"), row.summary.to_owned());
        self.report
            .add(State::NoEffect, row.name, Some(place), text);
    }
}

/// What kind of error a message of `-t` is, and which directive it is about.
fn classify(message: &str) -> (State, String) {
    let quoted: Vec<&str> = message.split('"').skip(1).step_by(2).collect();
    let first = quoted.first().copied().unwrap_or_default();
    if message.starts_with("unknown directive ") {
        return (State::Unknown, first.to_owned());
    }
    if message.contains("cannot be loaded") {
        return (State::Unknown, "load_module".to_owned());
    }
    if is_of_machine(message) {
        return (State::Machine, String::new());
    }
    if !message.contains("not supported yet") {
        return (State::Mistake, String::new());
    }
    let name = match (message.contains(" parameter of "), quoted.get(1)) {
        (true, Some(directive)) => format!("{directive} {first}"),
        _ => first.to_owned(),
    };
    (State::Refused, name)
}

/// Whether a message is about what the machine has: a call that failed with the system's reason, a
/// user, or a name of another host. The file may be right elsewhere.
fn is_of_machine(message: &str) -> bool {
    const OTHERS: &[&str] = &["getpwnam(", "getgrnam(", "host not found in ", "(os error "];
    let has_errno = message.split('(').skip(1).any(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0
            && rest
                .get(digits..)
                .is_some_and(|rest| rest.starts_with(": "))
    });
    has_errno || OTHERS.iter().any(|words| message.contains(words))
}

fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// A text in lines of so many columns, broken at spaces.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if length > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
