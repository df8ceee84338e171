//! `num_map`: a variable whose value depends on a number.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Directive, View, bytes_of};
use turnpike_plan::builder::Builder;
use turnpike_plan::keys::PlanMap;
use turnpike_plan::template::Template;
use turnpike_plan::variables::{Computed, Evaluate, Sources, Subject};

use super::plan;

/// A map of numbers, ready to be asked.
struct NumberTable {
    key: Template,
    /// Numbers that are written themselves; they count before all ranges.
    numbers: PlanMap<i64, Template>,
    /// In the order in which they are written; the first that has a number counts.
    ranges: Vec<(Range, Template)>,
    default: Option<Template>,
}

/// Whole numbers from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: i64,
    last: i64,
}

/// Reads a block and defines its variable.
pub(super) fn define<S: Subject>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<(), ConfError> {
    let place = |message: Complaint| view.error(view.span(), message);
    let key = bytes_of(view.argument(0));
    let key = Template::compile(&key, &mut builder.variables);
    let key = key.map_err(|error| place(error.into()))?;
    let name = plan::variable_name(view.argument(1)).map_err(place)?;
    let mut table = NumberTable {
        key,
        numbers: PlanMap::default(),
        ranges: Vec::new(),
        default: None,
    };
    let mut computed = Computed::Once;
    for line in view.data() {
        let done = match (line.name.text.as_str(), &*line.arguments) {
            ("volatile", []) => {
                computed = Computed::AtEachUse;
                Ok(())
            }
            (_, [_]) => table.add(line, builder),
            _ => Err("invalid number of the num_map parameters".into()),
        };
        if let Err(message) = done {
            builder.report(view.error(line.span, message));
        }
    }
    let defined = builder.variables.define(name, computed, Arc::new(table));
    defined.map_err(|error| place(error.into()))?;
    Ok(())
}

impl NumberTable {
    fn add<S>(&mut self, line: &Directive, builder: &mut Builder<'_, S>) -> Result<(), Complaint> {
        let value = Template::compile(&line.arguments[0].bytes(), &mut builder.variables)?;
        let key = line.name.text.as_str();
        if key == "default" {
            return match self.default.replace(value) {
                None => Ok(()),
                Some(_) => Err("duplicate default num_map parameter".into()),
            };
        }
        let range = range(key).ok_or_else(|| format!("invalid number or range \"{key}\""))?;
        if key.parse::<i64>().is_err() {
            self.ranges.push((range, value));
            return Ok(());
        }
        match self.numbers.entry(range.first) {
            Entry::Vacant(entry) => {
                entry.insert(value);
                Ok(())
            }
            Entry::Occupied(_) => Err(format!("conflicting parameter \"{key}\"").into()),
        }
    }

    fn find(&self, key: &[u8]) -> Option<&Template> {
        let number = number(std::str::from_utf8(key).ok()?)?;
        self.numbers.get(&number).or_else(|| {
            let mut ranges = self.ranges.iter();
            let found = ranges.find(|(range, _)| (range.first..=range.last).contains(&number));
            found.map(|(_, value)| value)
        })
    }
}

impl<S: Subject> Evaluate<S> for NumberTable {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let key = self.key.value(subject);
        if let Some(value) = self.find(&key).or(self.default.as_ref()) {
            value.evaluate(subject, out);
        }
        true
    }

    fn sources(&self) -> Sources {
        let ranges = self.ranges.iter().map(|(_, value)| value);
        let values = self.numbers.values().chain(ranges).chain(&self.default);
        Sources::of(values.chain([&self.key]))
    }
}

/// What a source value stands for: `80`, `<=1023`, `<1024`, `>1023`, `>=1024` or `8080-8090`.
fn range(text: &str) -> Option<Range> {
    let (first, last) = if let Some(last) = text.strip_prefix("<=") {
        (i64::MIN, number(last)?)
    } else if let Some(end) = text.strip_prefix('<') {
        (i64::MIN, number(end)?.checked_sub(1)?)
    } else if let Some(first) = text.strip_prefix(">=") {
        (number(first)?, i64::MAX)
    } else if let Some(before) = text.strip_prefix('>') {
        (number(before)?.checked_add(1)?, i64::MAX)
    } else if let Some(one) = number(text) {
        (one, one)
    } else {
        // The first character may be the sign of the first number.
        let dash = text.char_indices().skip(1).find(|(_, one)| *one == '-')?.0;
        (number(&text[..dash])?, number(&text[dash + 1..])?)
    };
    (first <= last).then_some(Range { first, last })
}

/// A whole number in decimal digits, with a minus sign or without.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    //! What the source values stand for.

    use super::{Range, range};

    #[test]
    fn numbers_comparisons_and_ranges_are_read() {
        let (least, most) = (i64::MIN, i64::MAX);
        for (text, expected) in [
            ("80", Some((80, 80))),
            ("-5", Some((-5, -5))),
            ("0", Some((0, 0))),
            ("<=1023", Some((least, 1023))),
            ("<1024", Some((least, 1023))),
            (">=1024", Some((1024, most))),
            (">1023", Some((1024, most))),
            ("8080-8090", Some((8080, 8090))),
            ("7-7", Some((7, 7))),
            ("-9--2", Some((-9, -2))),
            ("-9-2", Some((-9, 2))),
            ("9223372036854775807", Some((most, most))),
            ("9223372036854775808", None),
            (">9223372036854775807", None),
            ("8090-8080", None),
            ("", None),
            ("-", None),
            ("<", None),
            ("+5", None),
            ("1.5", None),
            ("a", None),
            ("1-", None),
            ("é-1", None),
        ] {
            let expected = expected.map(|(first, last)| Range { first, last });
            assert_eq!(range(text), expected, "{text}");
        }
    }
}
