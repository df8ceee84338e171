//! HdrHistogram interval logs: what `--hdr` writes and `merge` adds up.
//!
//! One line per part of a transaction, marked by its tag; values are nanoseconds.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};

use crate::histogram::Histogram;
use crate::plan::Pacing;
use crate::report::text::last_byte;
use crate::run::Outcome;

/// Decimal digits kept; our own buckets are as fine.
const DIGITS: u8 = 3;
/// The log's largest values are printed in milliseconds.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// Why a log was not read.
#[derive(Debug)]
pub(crate) enum LogError {
    File(io::Error),
    /// A line is no interval, or its histogram cannot be decoded.
    Format,
}

impl std::fmt::Display for LogError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogError::File(error) => error.fmt(formatter),
            LogError::Format => formatter.write_str("not an HdrHistogram log"),
        }
    }
}

impl std::error::Error for LogError {}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        LogError::File(error)
    }
}

/// Histograms by tag.
pub(crate) type Tagged = BTreeMap<String, Hdr<u64>>;

/// The histograms of a run, by the tags of the log.
pub(crate) fn of_run(outcome: &Outcome, pacing: Pacing) -> Tagged {
    let tally = &outcome.tally;
    let parts = [
        ("latency", &tally.latency),
        ("connect", &tally.connect),
        ("tls", &tally.tls),
        ("first_byte", &tally.first_byte),
        ("last_byte", last_byte(pacing, tally)),
        ("late_start", &tally.lag),
    ];
    let filled = parts.iter().filter(|(_, histogram)| histogram.count() > 0);
    filled
        .filter_map(|(tag, histogram)| Some(((*tag).to_owned(), convert(histogram)?)))
        .collect()
}

/// Writes a log of one interval.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(
    path: &Path,
    tagged: &Tagged,
    started: SystemTime,
    length: Duration,
) -> Result<(), LogError> {
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    let mut serializer = V2DeflateSerializer::new();
    {
        let mut builder = IntervalLogWriterBuilder::new();
        let mut log = builder
            .add_comment("turnpike load; values in nanoseconds")
            .with_start_time(started)
            .with_base_time(started)
            .with_max_value_divisor(MAX_VALUE_DIVISOR)
            .begin_log_with(&mut file, &mut serializer)?;
        for (name, histogram) in tagged {
            log.write_histogram(histogram, Duration::ZERO, length, Tag::new(name))
                .map_err(|_| LogError::Format)?;
        }
    }
    file.flush()?;
    Ok(())
}

/// Adds a log's histograms to `tagged`; lines without a tag count as `latency`. Returns the sum
/// of the intervals' lengths for the longest tag.
///
/// # Errors
/// When the file cannot be read or is no such log.
pub(crate) fn read(path: &Path, tagged: &mut Tagged) -> Result<Duration, LogError> {
    let bytes = std::fs::read(path)?;
    let mut deserializer = Deserializer::new();
    let mut lengths: BTreeMap<String, Duration> = BTreeMap::new();
    for entry in IntervalLogIterator::new(&bytes) {
        let LogEntry::Interval(interval) = entry.map_err(|_| LogError::Format)? else {
            continue;
        };
        let histogram = decode(&interval, &mut deserializer)?;
        let name = interval
            .tag()
            .map_or("latency", |tag| tag.as_str())
            .to_owned();
        *lengths.entry(name.clone()).or_default() += interval.duration();
        match tagged.get_mut(&name) {
            Some(sum) => sum.add(&histogram).map_err(|_| LogError::Format)?,
            None => {
                tagged.insert(name, histogram);
            }
        }
    }
    Ok(lengths.into_values().max().unwrap_or_default())
}

fn decode(
    interval: &IntervalLogHistogram<'_>,
    deserializer: &mut Deserializer,
) -> Result<Hdr<u64>, LogError> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(interval.encoded_histogram())
        .map_err(|_| LogError::Format)?;
    let mut histogram: Hdr<u64> = deserializer
        .deserialize(&mut bytes.as_slice())
        .map_err(|_| LogError::Format)?;
    histogram.auto(true);
    Ok(histogram)
}

fn convert(histogram: &Histogram) -> Option<Hdr<u64>> {
    let mut converted = Hdr::new(DIGITS).ok()?;
    converted.auto(true);
    for (value, count) in histogram.buckets() {
        converted.record_n(value, count).ok()?;
    }
    Some(converted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_log_is_read_back_and_added_up() {
        let mut histogram = Histogram::default();
        for value in 1..=10_000_u64 {
            histogram.record(value * 1000);
        }
        let mut tagged = Tagged::new();
        tagged.insert("latency".to_owned(), convert(&histogram).unwrap());
        let name = format!("turnpike-load-{}.hlog", std::process::id());
        let path = std::env::temp_dir().join(name);
        write(&path, &tagged, SystemTime::now(), Duration::from_secs(2)).unwrap();
        let mut sum = Tagged::new();
        assert_eq!(read(&path, &mut sum).unwrap(), Duration::from_secs(2));
        read(&path, &mut sum).unwrap();
        let latency = &sum["latency"];
        assert_eq!(latency.len(), 20_000);
        let p99 = latency.value_at_quantile(0.99);
        assert!(p99.abs_diff(9_900_000) < 20_000, "{p99}");
        std::fs::write(&path, "garbage").unwrap();
        assert!(read(&path, &mut sum).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
