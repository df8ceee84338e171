//! The ConfigMap: what the administrator sets for every Ingress. Each key has a row with its
//! default, and what cannot be used keeps the default, as in ingress-nginx.

mod rows;

use std::collections::BTreeMap;

use turnpike_conf::did_you_mean;

use crate::annotations::Risk;
use crate::findings::{Finding, Level, Subject};
use crate::values::{Effect, Kind, flag, split};

pub use rows::SETTINGS;

/// A key: what a value may be, its default, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub struct SettingRow {
    pub name: &'static str,
    pub kind: Kind,
    /// Empty if nothing is set.
    pub default: &'static str,
    pub effect: Effect,
}

/// The values of all keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    written: BTreeMap<&'static str, String>,
    blocked_words: Vec<String>,
}

impl Settings {
    /// Reads a ConfigMap's data.
    pub(crate) fn read(
        data: &BTreeMap<String, String>,
        subject: &Subject,
        findings: &mut Vec<Finding>,
    ) -> Settings {
        let mut settings = Settings::default();
        let mut find = |level, text| {
            findings.push(Finding {
                subject: subject.clone(),
                level,
                text,
                awaits_other: false,
            });
        };
        for (name, value) in data {
            let Some(row) = SETTINGS.iter().find(|row| row.name == name) else {
                find(Level::LeftOut, unknown(name));
                continue;
            };
            match row.effect {
                Effect::Refused(text) if flag(value) != Some(false) => {
                    find(Level::LeftOut, format!("key {name}: {text}"));
                    continue;
                }
                Effect::WithoutEffect(text) => {
                    find(Level::Note, format!("key {name} changes nothing: {text}"));
                }
                _ => {}
            }
            match row.kind.check(value) {
                Ok(()) => {
                    settings.written.insert(row.name, value.trim().to_owned());
                }
                Err(text) => find(Level::LeftOut, format!("key {name}: the value {text}")),
            }
        }
        let words = split(settings.text("annotation-value-word-blocklist"));
        settings.blocked_words = words.map(str::to_owned).collect();
        settings
    }

    /// The value of a key, or its default.
    pub(crate) fn text(&self, name: &str) -> &str {
        if let Some(value) = self.written.get(name) {
            return value;
        }
        let row = SETTINGS.iter().find(|row| row.name == name);
        debug_assert!(row.is_some(), "no key {name}");
        row.map_or("", |row| row.default)
    }

    /// The value of a key, unless it is empty.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|value| !value.is_empty())
    }

    /// Whether a flag is on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        flag(self.text(name)).unwrap_or(false)
    }

    /// The value of a number; 0 if it is none.
    pub(crate) fn number(&self, name: &str) -> u32 {
        self.text(name).parse().unwrap_or(0)
    }

    /// The parts of a list.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        split(self.text(name)).collect()
    }

    /// The highest risk that an annotation may have.
    pub(crate) fn risk_max(&self) -> Risk {
        match self
            .text("annotations-risk-level")
            .to_ascii_lowercase()
            .as_str()
        {
            "critical" => Risk::Critical,
            "medium" => Risk::Medium,
            "low" => Risk::Low,
            _ => Risk::High,
        }
    }

    /// The first word of the administrator's list that a value has.
    pub(crate) fn blocked_word(&self, value: &str) -> Option<&str> {
        let mut words = self.blocked_words.iter();
        words.find(|word| value.contains(*word)).map(String::as_str)
    }
}

fn unknown(name: &str) -> String {
    let names = SETTINGS.iter().map(|row| row.name);
    match did_you_mean(name, names) {
        Some(hint) => format!("there is no key {name}{hint}"),
        None => format!("there is no key {name}"),
    }
}
