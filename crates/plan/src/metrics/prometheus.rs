//! Samples as Prometheus reads them: its text format, version 0.0.4.

use std::collections::HashSet;
use std::fmt::{self, Write};

use turnpike_lane::counters::{BOUNDS_NS, Distribution};

use super::{Kind, Row, Sample, Samples, Value};

/// What the text is, for a response's head.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Stands before every name.
const PREFIX: &str = "turnpike_";

/// A row's name as Prometheus has it.
pub fn reference_name(row: &Row) -> String {
    let suffix = match row.kind {
        Kind::Counter => "_total",
        Kind::Gauge | Kind::Histogram => "",
    };
    format!("{PREFIX}{}{suffix}", row.name)
}

/// The text of all samples; those of one row stand together, as the format wants it.
///
/// # Errors
/// The writer's.
pub fn write(samples: &Samples, out: &mut dyn Write) -> fmt::Result {
    let mut done = HashSet::new();
    for (index, first) in samples.list().iter().enumerate() {
        if !done.insert(first.row.name) {
            continue;
        }
        let name = reference_name(first.row);
        let kind = match first.row.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        write!(out, "# HELP {name} ")?;
        escape(first.row.help, false, out)?;
        write!(out, "\n# TYPE {name} {kind}\n")?;
        let same = samples.list()[index..].iter();
        for sample in same.filter(|sample| sample.row.name == first.row.name) {
            one(&name, sample, out)?;
        }
    }
    Ok(())
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
    let labels = sample.row.labels.iter().copied();
    let values = sample.labels.iter().map(String::as_str);
    let labels = labels.zip(values).chain(bound.map(|bound| ("le", bound)));
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
