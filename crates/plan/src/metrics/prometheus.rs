//! Samples in Prometheus's text format and in OpenMetrics.

use std::collections::HashMap;
use std::fmt::{self, Write};

use turnpike_lane::counters::{BOUNDS_NS, Distribution};

use super::{Buckets, Kind, Row, Sample, Samples, Value};

/// The text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The format for a client with this `Accept` field: OpenMetrics if the field names it.
    pub fn accepted(accept: &[u8]) -> Format {
        let wanted = b"application/openmetrics-text";
        if accept.windows(wanted.len()).any(|part| part == wanted) {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    /// The value of Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The prefix of every name, except those that all programs share.
const PREFIX: &str = "turnpike_";

/// The prefix of names that Prometheus's client libraries define for every program.
const COMMON_PREFIX: &str = "process_";

/// A row's name in Prometheus's format.
pub fn reference_name(row: &Row) -> String {
    family_name(row) + series_suffix(row)
}

/// The name without the suffix of counters.
fn family_name(row: &Row) -> String {
    if row.name.starts_with(COMMON_PREFIX) {
        row.name.to_owned()
    } else {
        format!("{PREFIX}{}", row.name)
    }
}

fn series_suffix(row: &Row) -> &'static str {
    match row.kind {
        Kind::Counter => "_total",
        Kind::Gauge | Kind::Histogram | Kind::Ranking => "",
    }
}

/// Writes all samples but those of rankings; those of one row are together, as the format requires.
///
/// # Errors
/// The writer's error.
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
            Kind::Ranking => continue,
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
        Value::Buckets(own) => own_histogram(name, sample, own, out),
    }
}

/// Writes a histogram. Its buckets are cumulative: each counts all times up to its bound.
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

/// Writes a histogram with bounds of its own. OpenMetrics has no sum where that may fall, and then
/// no count but the last bucket's.
fn own_histogram(name: &str, sample: &Sample, own: &Buckets, out: &mut dyn Write) -> fmt::Result {
    let bucket = format!("{name}_bucket");
    for (bound, count) in own.bounds.iter().zip(&own.counts) {
        series(&bucket, sample, Some(&canonical(*bound)), out)?;
        writeln!(out, " {count}")?;
    }
    series(&bucket, sample, Some("+Inf"), out)?;
    writeln!(out, " {}", own.count)?;
    let Some(sum) = own.sum else {
        return Ok(());
    };
    series(&format!("{name}_sum"), sample, None, out)?;
    writeln!(out, " {sum}")?;
    series(&format!("{name}_count"), sample, None, out)?;
    writeln!(out, " {}", own.count)
}

/// A bound as OpenMetrics has it: with a point, and from a million on and below a ten-thousandth
/// with an exponent of two digits.
fn canonical(bound: f64) -> String {
    let size = bound.abs();
    if bound == 0.0 || (1e-4..1e6).contains(&size) {
        return format!("{bound:?}");
    }
    let text = format!("{bound:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// Writes a name with its labels.
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

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn bounds_are_written_as_the_client_library_writes_them() {
        for (bound, expected) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.25, "0.25"),
            (-2.5, "-2.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (100_000.0, "100000.0"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(canonical(bound), expected);
        }
    }
}
