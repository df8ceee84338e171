//! A row of the findings: what can be found, and what was seen of it.

use serde::Serialize;

use crate::change::Change;
use crate::facts::Facts;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Good to know, or worth an experiment.
    Note,
    /// Limits connections before the hardware does.
    Warning,
    /// Has already cost connections, or will at the first load.
    Problem,
}

impl Severity {
    /// The word in the output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

/// One thing that can be found.
pub(crate) struct Row {
    /// The name for `--explain` and for scripts.
    pub(crate) id: &'static str,
    /// What it is, in a line.
    pub(crate) title: &'static str,
    /// Why it matters for connections per second.
    pub(crate) why: &'static str,
    /// Where that stands.
    pub(crate) source: &'static str,
    /// What to do about it.
    pub(crate) fix: &'static str,
    /// What to expect of that.
    pub(crate) effect: &'static str,
    /// Looks at the facts.
    pub(crate) find: fn(&Facts) -> Option<Seen>,
}

/// What was seen, with the figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) severity: Severity,
    pub(crate) evidence: String,
    /// What would be changed; empty where a person has to do it.
    pub(crate) changes: Vec<Change>,
}

impl Seen {
    pub(crate) fn note(evidence: impl Into<String>) -> Option<Seen> {
        Seen::new(Severity::Note, evidence)
    }

    pub(crate) fn warning(evidence: impl Into<String>) -> Option<Seen> {
        Seen::new(Severity::Warning, evidence)
    }

    pub(crate) fn problem(evidence: impl Into<String>) -> Option<Seen> {
        Seen::new(Severity::Problem, evidence)
    }

    fn new(severity: Severity, evidence: impl Into<String>) -> Option<Seen> {
        Some(Seen {
            severity,
            evidence: evidence.into(),
            changes: Vec::new(),
        })
    }
}

/// Adds what would be changed.
pub(crate) trait WithChanges {
    /// The same with these changes.
    fn with(self, changes: Vec<Change>) -> Option<Seen>;
}

impl WithChanges for Option<Seen> {
    fn with(self, changes: Vec<Change>) -> Option<Seen> {
        self.map(|seen| Seen { changes, ..seen })
    }
}
