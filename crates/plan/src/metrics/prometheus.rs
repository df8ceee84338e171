//! Samples as Prometheus reads them: its text format, and OpenMetrics.

use std::collections::HashMap;
use std::fmt::{self, Write};

use turnpike_lane::counters::{BOUNDS_NS, Distribution};

use super::{Kind, Row, Sample, Samples, Value};

/// Which text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// What a client wants whose `Accept` field this is: OpenMetrics where it names that.
    pub fn accepted(accept: &[u8]) -> Format {
        let wanted = b"application/openmetrics-text";
        match accept.windows(wanted.len()).any(|part| part == wanted) {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// What the text is, for a response's head.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Stands before every name, but for those that all programs have in common.
const PREFIX: &str = "turnpike_";

/// What the names begin with that client libraries of Prometheus give every program.
const COMMON_PREFIX: &str = "process_";

/// A row's name as Prometheus has it.
pub fn reference_name(row: &Row) -> String {
    family_name(row) + series_suffix(row)
}

/// The name without what counters have at the end.
fn family_name(row: &Row) -> String {
    match row.name.starts_with(COMMON_PREFIX) {
        true => row.name.to_owned(),
        false => format!("{PREFIX}{}", row.name),
    }
}

fn series_suffix(row: &Row) -> &'static str {
    match row.kind {
        Kind::Counter => "_total",
        Kind::Gauge | Kind::Histogram => "",
    }
}

/// The text of all samples; those of one row stand together, as the format wants it.
///
/// # Errors
/// The writer's.
pub fn write(samples: &Samples, format: Format, out: &mut dyn Write) -> fmt::Result {
    let mut families: Vec<Vec<&Sample>> = Vec::new();
    let mut places = HashMap::<&str, usize>::new();
    for sample in samples.list() {
        let place = *places.entry(sample.row.name).or_insert(families.len());
        match families.get_mut(place) {
            Some(family) => family.push(sample),
            None => families.push(vec![sample]),
        }
    }
    for family in &families {
        let row = family[0].row;
        let name = reference_name(row);
        let described = match format {
            Format::Prometheus => name.clone(),
            Format::OpenMetrics => family_name(row),
        };
        let kind = match row.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        write!(out, "# HELP {described} ")?;
        escape(row.help, format == Format::OpenMetrics, out)?;
        write!(out, "\n# TYPE {described} {kind}\n")?;
        for sample in family {
            one(&name, sample, out)?;
        }
    }
    match format {
        Format::Prometheus => Ok(()),
        Format::OpenMetrics => out.write_str("# EOF\n"),
    }
}

fn one(name: &str, sample: &Sample, out: &mut dyn Write) -> fmt::Result {
    match &sample.value {
        Value::Number(number) => {
            series(name, sample, None, out)?;
            writeln!(out, " {number}")
        }
        Value::Real(number) => {
            series(name, sample, None, out)?;
            writeln!(out, " {number}")
        }
        Value::Distribution(times) => histogram(name, sample, times, out),
    }
}

/// Buckets add up: each counts everything up to its bound.
fn histogram(
    name: &str,
    sample: &Sample,
    times: &Distribution,
    out: &mut dyn Write,
) -> fmt::Result {
    let bucket = format!("{name}_bucket");
    let mut count = 0;
    for (index, times) in times.buckets.iter().enumerate() {
        count += times;
        let bound = match BOUNDS_NS.get(index) {
            Some(bound_ns) => (*bound_ns as f64 / 1e9).to_string(),
            None => "+Inf".to_owned(),
        };
        series(&bucket, sample, Some(&bound), out)?;
        writeln!(out, " {count}")?;
    }
    series(&format!("{name}_sum"), sample, None, out)?;
    writeln!(out, " {}", times.sum_ns as f64 / 1e9)?;
    series(&format!("{name}_count"), sample, None, out)?;
    writeln!(out, " {count}")
}

/// A name with its labels.
fn series(name: &str, sample: &Sample, bound: Option<&str>, out: &mut dyn Write) -> fmt::Result {
    out.write_str(name)?;
    let labels = sample
        .labels
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    let labels = labels.chain(bound.map(|bound| ("le", bound)));
    let mut separator = '{';
    for (label, value) in labels {
        write!(out, "{separator}{label}=\"")?;
        escape(value, true, out)?;
        out.write_char('"')?;
        separator = ',';
    }
    match separator {
        '{' => Ok(()),
        _ => out.write_char('}'),
    }
}

fn escape(text: &str, quotes: bool, out: &mut dyn Write) -> fmt::Result {
    for letter in text.chars() {
        match letter {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '"' if quotes => out.write_str("\\\"")?,
            other => out.write_char(other)?,
        }
    }
    Ok(())
}
