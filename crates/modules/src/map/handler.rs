//! Asking a map.

use turnpike_http::exchange::Exchange;
use turnpike_http::regex::Undecided;
use turnpike_http::variables::Evaluate;

use super::plan::Table;

impl Evaluate<Exchange> for Table {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let mut key = self.key.value(exchange);
        if self.hostnames && key.last() == Some(&b'.') {
            key.pop();
        }
        let Ok(found) = self.find(exchange, &key) else {
            return false;
        };
        if let Some(value) = found.or(self.default) {
            self.values[value].evaluate(exchange, out);
        }
        true
    }
}

impl Table {
    fn find(&self, exchange: &Exchange, key: &[u8]) -> Result<Option<usize>, Undecided> {
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
        self.patterns.first(exchange, key)
    }
}
