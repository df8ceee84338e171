//! `time_format`: variables with the local time in a format of one's own, as in Angie.

use std::sync::Arc;

use turnpike_conf::{
    Arguments, Complaint, ConfError, Context, Entry, Merge, ReferenceText, Repeat, Row, View,
};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{Builder, Family};
use turnpike_plan::time;
use turnpike_plan::variables::{Evaluate, Sources};

const ROWS: &[Row] = &[Row {
    name: "time_format",
    contexts: &[Context::Http],
    arguments: Arguments::exactly(2),
    repeat: Repeat::Many,
    merge: Merge::Own,
    syntax: "$variable format",
    summary: "Defines a variable with the local time in a format of strftime(3), in which `%L` are \
        the milliseconds. As in Angie.",
    ..Row::PLAIN
}];

/// The time in a format.
#[derive(Debug, PartialEq, Eq)]
struct Format {
    /// What strftime writes; between two parts stand the milliseconds.
    parts: Vec<String>,
}

pub(crate) const FAMILY: Family = Family {
    name: "time_format",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("time_format/reference.md"))],
    http,
    ..Family::NONE
};

fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    for entry in view.own_all("time_format") {
        if let Err(message) = define(entry, builder) {
            builder.report(view.error(entry.span, message));
        }
    }
    Ok(())
}

fn define(entry: &Entry, builder: &mut Builder<'_>) -> Result<(), Complaint> {
    let written = entry.argument(0);
    let name = written.strip_prefix('$').filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("invalid variable name \"{written}\""))?;
    let format = Format::read(entry.argument(1))?;
    builder.variables.define_computed(name, Arc::new(format))?;
    Ok(())
}

impl Format {
    /// Reads what was written.
    ///
    /// # Errors
    /// It ends within a specifier.
    fn read(written: &str) -> Result<Format, Complaint> {
        let invalid = || format!("invalid time format \"{written}\"");
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut rest = written.chars();
        while let Some(character) = rest.next() {
            if character != '%' {
                part.push(character);
                continue;
            }
            match rest.next().ok_or_else(invalid)? {
                'L' => parts.push(std::mem::take(&mut part)),
                specifier => part.extend([character, specifier]),
            }
        }
        parts.push(part);
        let format = Format { parts };
        let is_valid = format.append(0, &mut Vec::new());
        is_valid.then_some(format).ok_or_else(|| invalid().into())
    }

    /// Appends the time; `false` if the format is invalid.
    fn append(&self, unix_ms: u64, out: &mut Vec<u8>) -> bool {
        let (second, millisecond) = (unix_ms / 1000, unix_ms % 1000);
        self.parts.iter().enumerate().all(|(index, part)| {
            if index > 0 {
                out.extend_from_slice(format!("{millisecond:03}").as_bytes());
            }
            time::append_local_as(second, part, out)
        })
    }
}

impl Evaluate<Exchange> for Format {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        self.append(exchange.lane.clock.unix_ms(), out)
    }

    fn sources(&self) -> Sources {
        Sources::of([])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Format;

    #[test]
    fn milliseconds_stand_where_they_are_asked_for() {
        let shown = |format: &str| {
            let mut out = Vec::new();
            assert!(
                Format::read(format)
                    .unwrap()
                    .append(1_700_000_012_034, &mut out)
            );
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown("%L"), "034");
        assert_eq!(shown("a%%L%Lb%L"), "a%L034b034");
        assert_eq!(shown("%K"), "%K", "as in Angie");
        assert_eq!(shown(""), "");
        let whole = shown("%Y-%m-%dT%H:%M:%S.%L");
        assert!(
            whole.starts_with("2023-11-1") && whole.ends_with(":32.034"),
            "{whole}"
        );
    }

    #[test]
    fn a_percent_sign_alone_is_refused() {
        for format in ["%", "a%", "%L%"] {
            let error = Format::read(format).unwrap_err();
            assert_eq!(error, format!("invalid time format \"{format}\"").into());
        }
    }
}
