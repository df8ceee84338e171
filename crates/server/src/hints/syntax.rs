//! What a directive takes, read from the syntax in its row.

use turnpike_conf::{Row, Value};
use turnpike_lane::log::Level;

/// A word that can be written in a directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parameter {
    /// The word, or the part of it before `=`.
    pub(super) name: &'static str,
    /// What stands behind `=`; `None` for a word alone.
    pub(super) value: Option<&'static str>,
}

/// Words of a syntax that stand for others, and are not written.
const PLACEHOLDERS: &[&str] = &[
    "CIDR",
    "N",
    "URL",
    "address",
    "burst",
    "code",
    "condition",
    "connections",
    "count",
    "expression",
    "factor",
    "file",
    "filename",
    "format",
    "group",
    "hostname",
    "interval",
    "key",
    "length",
    "level",
    "levels",
    "limit",
    "mask",
    "method",
    "mime-type",
    "mode",
    "name",
    "number",
    "parameter",
    "path",
    "period",
    "port",
    "prefix",
    "rate",
    "regex",
    "replacement",
    "size",
    "string",
    "text",
    "time",
    "uri",
    "user",
    "value",
    "variable",
    "zone",
];

/// The levels of a log.
pub(super) fn levels() -> Vec<Parameter> {
    let level = |level: &Level| Parameter {
        name: level.name(),
        value: None,
    };
    Level::ALL.iter().map(level).collect()
}

/// The words that can be written in a directive with this row, each once.
pub(super) fn parameters(row: &Row) -> Vec<Parameter> {
    let mut found: Vec<Parameter> = Vec::new();
    let mut add = |name: &'static str, value| {
        if found.iter().all(|one| one.name != name) {
            found.push(Parameter { name, value });
        }
    };
    if let Value::OneOf(words) = row.value {
        words.iter().for_each(|word| add(word, None));
    }
    for word in row.syntax.split([' ', '|', '[', ']', ',']) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.split_once(':').map_or(word, |(name, _)| name), None),
        };
        let is_word = name.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !name.contains(['$', '{', '@', '.'].as_slice()) | name.starts_with("TLS");
        if is_word && (value.is_some() || !PLACEHOLDERS.contains(&name)) {
            add(name, value);
        }
    }
    found
}
