//! Sizes and times in units that the language does not have, and words for `on` and `off`.

use turnpike_conf::value::{milliseconds, number, offset, seconds, size};
use turnpike_conf::{Row, Value};

use super::mistake::Mistake;

/// Units as people write them, with the language's own.
const SIZES: &[(&str, &str)] = &[
    ("b", ""),
    ("byte", ""),
    ("bytes", ""),
    ("kb", "k"),
    ("kib", "k"),
    ("kbyte", "k"),
    ("kbytes", "k"),
    ("mb", "m"),
    ("mib", "m"),
    ("mbyte", "m"),
    ("mbytes", "m"),
    ("meg", "m"),
    ("gb", "g"),
    ("gib", "g"),
    ("gbyte", "g"),
    ("gbytes", "g"),
    ("g", "g"),
];
const TIMES: &[(&str, &str)] = &[
    ("msec", "ms"),
    ("msecs", "ms"),
    ("millis", "ms"),
    ("milliseconds", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("min", "m"),
    ("mins", "m"),
    ("minute", "m"),
    ("minutes", "m"),
    ("hr", "h"),
    ("hrs", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("week", "w"),
    ("weeks", "w"),
];

/// The grammar of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Size,
    Offset,
    Milliseconds,
    Seconds,
}

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let rest = mistake.message.strip_prefix('"')?;
    let (name, complaint) = rest.split_once("\" directive ")?;
    if !matches!(complaint, "invalid value" | "invalid number") {
        return None;
    }
    let found = mistake.named(name)?;
    let row = found.row(mistake.registry)?;
    let words = found.directive.arguments.iter();
    let mut texts = words.map(|word| word.text.as_str());
    if complaint == "invalid number" {
        let text = found.argument(0);
        return Some(format!("; \"{text}\" is not a whole number without a unit"));
    }
    texts
        .find_map(|text| correction(kinds(row), text))
        .or_else(|| grammar(row).map(|words| format!("; {words}")))
}

/// What a parameter takes, where its value is none.
pub(super) fn of_parameter(name: &str, takes: &str, value: &str) -> Option<String> {
    let (kind, words) = match takes {
        "time" => (Kind::Milliseconds, TIME_WORDS),
        "size" => (Kind::Offset, SIZE_WORDS),
        "number" | "N" if number(value).is_none() => {
            return Some(format!("; \"{name}\" takes a whole number"));
        }
        _ => return None,
    };
    correction(&[kind], value).or_else(|| Some(format!("; \"{name}\" takes {words}")))
}

const SIZE_WORDS: &str = "bytes, or a number with k, m or g";
const TIME_WORDS: &str = "seconds, or a number with ms, s, m, h or d";

/// What a row's values look like.
fn grammar(row: &Row) -> Option<String> {
    match row.value {
        Value::Size | Value::Buffers => {
            Some("a size is in bytes, or a number with k or m".to_owned())
        }
        Value::Offset => Some(format!("a size is in {SIZE_WORDS}")),
        Value::Milliseconds | Value::Seconds => Some(format!("a time is in {TIME_WORDS}")),
        _ => None,
    }
}

/// The grammars that a row's arguments can have.
fn kinds(row: &Row) -> &'static [Kind] {
    match row.value {
        Value::Size | Value::Buffers => &[Kind::Size],
        Value::Offset => &[Kind::Offset],
        Value::Milliseconds => &[Kind::Milliseconds],
        Value::Seconds => &[Kind::Seconds],
        _ => &[Kind::Offset, Kind::Milliseconds],
    }
}

/// A number with a unit of people's, in a unit of the language's.
fn correction(kinds: &[Kind], text: &str) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = text.split_at(digits);
    if amount.is_empty() {
        return None;
    }
    let unit = unit.trim_start_matches(' ').to_ascii_lowercase();
    let in_units = |units: &[(&str, &'static str)]| {
        let found = units.iter().find(|(word, _)| *word == unit);
        found.map(|(_, own)| *own)
    };
    kinds.iter().find_map(|kind| match kind {
        Kind::Size if in_units(SIZES) == Some("g") => {
            let megabytes = number(amount)?.checked_mul(1024)?;
            let own = format!("{megabytes}m");
            size(&own).map(|_| format!("; write \"{own}\" (a size in memory has k or m)"))
        }
        Kind::Size => {
            let own = format!("{amount}{}", in_units(SIZES)?);
            size(&own).map(|_| format!("; write \"{own}\" (k or m)"))
        }
        Kind::Offset => {
            let own = format!("{amount}{}", in_units(SIZES)?);
            offset(&own).map(|_| format!("; write \"{own}\" (k, m or g)"))
        }
        Kind::Milliseconds => {
            let own = format!("{amount}{}", in_units(TIMES)?);
            milliseconds(&own).map(|_| format!("; write \"{own}\" (ms, s, m, h or d)"))
        }
        Kind::Seconds => {
            let own = format!("{amount}{}", in_units(TIMES)?);
            seconds(&own).map(|_| format!("; write \"{own}\" (s, m, h or d)"))
        }
    })
}
