//! Findings for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::facts::{Facts, counted};
use crate::findings::Finding;
use crate::row::Severity;

/// Columns of a line at most: longer ones are hard to read.
const WIDTH_MAX: usize = 100;
/// Columns where the terminal does not tell.
const WIDTH: usize = 80;
/// Columns before what is seen, why and so on.
const INDENT: usize = 10;

/// Columns of the terminal, within reason.
pub(crate) fn width() -> usize {
    let told = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    told.unwrap_or(WIDTH).clamp(40, WIDTH_MAX)
}

/// A text in lines, each indented.
pub(crate) fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && indent + length > width {
            let _ = writeln!(lines, "{:indent$}{line}", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(lines, "{:indent$}{line}", "");
    lines
}

/// The findings for people.
pub(crate) fn text(facts: &Facts, findings: &[Finding], is_brief: bool, width: usize) -> String {
    let mut text = wrapped(&facts.machine(), 0, width);
    for finding in findings {
        text.push('\n');
        text.push_str(&part(finding, is_brief, width));
    }
    let count = |severity: Severity| {
        findings
            .iter()
            .filter(|finding| finding.seen.severity == severity)
            .count()
    };
    let sum = format!(
        "\n{}, {}, {}.\n",
        counted(count(Severity::Problem), "problem"),
        counted(count(Severity::Warning), "warning"),
        counted(count(Severity::Note), "note"),
    );
    text.push_str(&sum);
    if !findings.is_empty() {
        text.push_str("`turnpike tune check --explain ID` explains one of them.\n");
    }
    text
}

fn part(finding: &Finding, is_brief: bool, width: usize) -> String {
    let (row, seen) = (finding.row, &finding.seen);
    let title = format!("{}: {} [{}]", seen.severity.word(), row.title, row.id);
    let mut text = wrapped(&title, 0, width);
    let mut field = |name: &str, words: &str| {
        let lines = wrapped(words, INDENT, width);
        let _ = write!(text, "  {name:<7} {}", lines.trim_start());
    };
    field("seen", &seen.evidence);
    if is_brief {
        return text;
    }
    field("why", row.why);
    field("fix", row.fix);
    field("effect", row.effect);
    field("here", &here(finding));
    field("source", row.source);
    text
}

/// Whether the fix can be made here.
fn here(finding: &Finding) -> String {
    let changes = &finding.seen.changes;
    let texts: Vec<String> = changes.iter().map(crate::change::Change::text).collect();
    match &finding.obstacle {
        _ if changes.is_empty() => "by hand".to_owned(),
        Some(obstacle) => format!("not possible here: {obstacle}"),
        None => format!("turnpike tune apply can set {}", texts.join(", ")),
    }
}

/// The findings for programs.
pub(crate) fn json(facts: &Facts, findings: &[Finding]) -> String {
    #[derive(Serialize)]
    struct Report<'a> {
        schema: &'static str,
        machine: String,
        findings: Vec<One<'a>>,
    }
    #[derive(Serialize)]
    struct One<'a> {
        id: &'a str,
        severity: Severity,
        title: &'a str,
        evidence: &'a str,
        why: &'a str,
        source: &'a str,
        fix: &'a str,
        effect: &'a str,
        changes: &'a [crate::change::Change],
        possible: bool,
        obstacle: Option<&'a str>,
    }
    let findings = findings.iter().map(|finding| One {
        id: finding.row.id,
        severity: finding.seen.severity,
        title: finding.row.title,
        evidence: &finding.seen.evidence,
        why: finding.row.why,
        source: finding.row.source,
        fix: finding.row.fix,
        effect: finding.row.effect,
        changes: &finding.seen.changes,
        possible: finding.obstacle.is_none() && !finding.seen.changes.is_empty(),
        obstacle: finding.obstacle.as_deref(),
    });
    let report = Report {
        schema: "turnpike-tune-check/1",
        machine: facts.machine(),
        findings: findings.collect(),
    };
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}
