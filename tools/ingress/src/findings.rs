//! What of the objects does not work, or not as written: each finding names its object.

use std::fmt;

/// How much a finding changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Served, but not in every point as written.
    Note,
    /// A value or an object is left out.
    LeftOut,
    /// A route answers with an error, since serving it would open what should be closed.
    Closed,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Level::Note => "note",
            Level::LeftOut => "left out",
            Level::Closed => "closed",
        })
    }
}

/// The object that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    pub kind: &'static str,
    /// Empty for objects of the whole cluster.
    pub namespace: String,
    pub name: String,
}

impl Subject {
    /// The subject of a namespace.
    pub fn new(kind: &'static str, namespace: &str, name: &str) -> Subject {
        Subject {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(formatter, "{} {}", self.kind, self.name)
        } else {
            write!(formatter, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// One thing that somebody should know about an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub subject: Subject,
    pub level: Level,
    /// What happened, where in the object, and what to do.
    pub text: String,
    /// Whether another object is missing or bad, so that it may come right without a change here.
    pub awaits_other: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {}", self.subject, self.level, self.text)
    }
}
