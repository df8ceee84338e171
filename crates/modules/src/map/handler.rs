//! Asking a map.

use turnpike_plan::regex::Undecided;
use turnpike_plan::variables::{self, Evaluate, Sources, Subject};

use super::plan::Table;

impl<S: Subject> Evaluate<S> for Table {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let found = self.key.with_value(subject, |key| {
            let key = match key.strip_suffix(b".") {
                Some(rest) if self.hostnames => rest,
                _ => key,
            };
            self.find(subject, key)
        });
        let Ok(found) = found else {
            return false;
        };
        if let Some(value) = found.or(self.default) {
            self.values[value].evaluate(subject, out);
        }
        true
    }

    fn sources(&self) -> Sources {
        Sources::of(self.values.iter().chain([&self.key]))
    }
}

impl Table {
    fn find<S: Subject>(&self, subject: &S, key: &[u8]) -> Result<Option<usize>, Undecided> {
        let name = if key.iter().any(u8::is_ascii_uppercase) {
            let lower = |text: &mut Vec<u8>| {
                text.extend(key.iter().map(u8::to_ascii_lowercase));
            };
            variables::with_text(subject, lower, |key| self.names.find(key))
        } else {
            self.names.find(key)
        };
        if let Some(value) = name {
            return Ok(Some(*value));
        }
        if key.is_empty() {
            return Ok(None);
        }
        self.patterns.first(subject, key)
    }
}
