//! Asking a map.

use turnpike_plan::regex::Undecided;
use turnpike_plan::variables::{Evaluate, Subject};

use super::plan::Table;

impl<S: Subject> Evaluate<S> for Table {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let mut key = self.key.value(subject);
        if self.hostnames && key.last() == Some(&b'.') {
            key.pop();
        }
        let Ok(found) = self.find(subject, &key) else {
            return false;
        };
        if let Some(value) = found.or(self.default) {
            self.values[value].evaluate(subject, out);
        }
        true
    }
}

impl Table {
    fn find<S: Subject>(&self, subject: &S, key: &[u8]) -> Result<Option<usize>, Undecided> {
        let name = match key.iter().any(u8::is_ascii_uppercase) {
            true => self.names.find(&key.to_ascii_lowercase()),
            false => self.names.find(key),
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
