//! An Ingress' annotations: each has a row, is checked once, and is then asked for by its name.
//!
//! A value that protects a route and cannot be used closes the route; any other is left out. An
//! annotation of a higher risk than the administrator allows refuses its whole Ingress, as in
//! ingress-nginx.

mod rows;

use std::collections::BTreeMap;

use turnpike_conf::did_you_mean;

use crate::findings::{Finding, Level, Subject};
use crate::settings::Settings;
use crate::values::{Effect, Kind, flag, split};

pub use rows::ANNOTATIONS;

/// How much an annotation may open, as ingress-nginx sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    Low,
    Medium,
    High,
    Critical,
}

/// An annotation: what a value may be, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub struct AnnotationRow {
    /// The name behind the prefix.
    pub name: &'static str,
    /// A second name.
    pub other_name: Option<&'static str>,
    pub kind: Kind,
    pub risk: Risk,
    pub effect: Effect,
    /// Whether a value that cannot be used closes the route.
    pub is_guard: bool,
}

/// The usable annotations of one Ingress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Annotations {
    values: BTreeMap<&'static str, String>,
    /// Why the routes of the Ingress are closed.
    pub(crate) closed: Option<String>,
}

/// What becomes of an Ingress by its annotations.
pub(crate) enum Read {
    Served(Annotations),
    /// The Ingress is left out as a whole.
    Refused(String),
}

impl Annotations {
    /// Reads the annotations with a prefix.
    pub(crate) fn read(
        written: &BTreeMap<String, String>,
        prefix: &str,
        settings: &Settings,
        subject: &Subject,
        findings: &mut Vec<Finding>,
    ) -> Read {
        let mut annotations = Annotations::default();
        let mut find = |level, text| {
            findings.push(Finding {
                subject: subject.clone(),
                level,
                text,
                awaits_other: false,
            });
        };
        for (full_name, value) in written {
            let Some(name) = full_name.strip_prefix(prefix) else {
                continue;
            };
            let Some(name) = name.strip_prefix('/') else {
                continue;
            };
            let Some(row) = row_of(name) else {
                find(Level::LeftOut, unknown(name));
                continue;
            };
            if let Some(word) = settings.blocked_word(value) {
                return Read::Refused(format!(
                    "annotation {name} has the word \"{word}\" of annotation-value-word-blocklist"
                ));
            }
            if row.kind == Kind::Snippet && !settings.flag("allow-snippet-annotations") {
                let text = format!(
                    "annotation {name}: snippets are switched off; the administrator can set \
                     allow-snippet-annotations to \"true\" in the ConfigMap"
                );
                find(Level::LeftOut, text);
                continue;
            }
            if row.risk > settings.risk_max() {
                return Read::Refused(format!(
                    "annotation {name} has the risk {:?}, and annotations-risk-level is {:?}",
                    row.risk,
                    settings.risk_max()
                ));
            }
            match row.effect {
                Effect::Refused(_) if flag(value) == Some(false) => {}
                Effect::Refused(text) => {
                    return Read::Refused(format!("annotation {name} is refused: {text}"));
                }
                Effect::WithoutEffect(text) => {
                    find(
                        Level::Note,
                        format!("annotation {name} changes nothing: {text}"),
                    );
                }
                Effect::Works | Effect::Differs(_) => {}
            }
            annotations.take(row, name, value, &mut find);
        }
        Read::Served(annotations)
    }

    fn take(
        &mut self,
        row: &AnnotationRow,
        name: &str,
        value: &str,
        find: &mut impl FnMut(Level, String),
    ) {
        match row.kind.check(value) {
            Ok(()) => {
                self.values.insert(row.name, value.trim().to_owned());
            }
            Err(text) => {
                let text = format!("annotation {name}: the value {text}");
                if row.is_guard {
                    find(Level::Closed, text.clone());
                    self.closed = Some(text);
                } else {
                    find(Level::LeftOut, text);
                }
            }
        }
    }

    /// A value that is written and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(row_of(name).is_some(), "no annotation {name}");
        let value = self.values.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// A flag that is written.
    pub(crate) fn written_flag(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(flag)
    }

    /// A flag, which is off if it is not written.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.written_flag(name).unwrap_or(false)
    }

    /// A number that is written.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.text(name).and_then(|value| value.parse().ok())
    }

    /// The parts of a list.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name)
            .map(|value| split(value).collect())
            .unwrap_or_default()
    }

    /// The snippets with their names.
    pub(crate) fn snippets(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let rows = ANNOTATIONS.iter().filter(|row| row.kind == Kind::Snippet);
        rows.filter_map(|row| Some((row.name, self.text(row.name)?)))
    }
}

/// The row of a name, or of a second name.
pub(crate) fn row_of(name: &str) -> Option<&'static AnnotationRow> {
    let mut rows = ANNOTATIONS.iter();
    rows.find(|row| row.name == name || row.other_name == Some(name))
}

fn unknown(name: &str) -> String {
    let names = ANNOTATIONS.iter().map(|row| row.name);
    match did_you_mean(name, names) {
        Some(hint) => format!("there is no annotation {name}{hint}"),
        None => format!("there is no annotation {name}"),
    }
}
