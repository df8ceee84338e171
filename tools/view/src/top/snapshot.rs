//! The content of a frame of `turnpike top`, and the differences between two frames.
//!
//! A frame is the answers of the control socket's `status` and `metrics format=json`. Missing
//! members count as 0, so that the view works with other versions of the server.

use std::collections::BTreeMap;

use serde_json::Value;

/// One frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    frame: Value,
    /// The index in `metrics` of each row.
    rows: BTreeMap<String, usize>,
}

/// A sample of a row: its labels and its value.
pub(crate) struct Sample<'a>(&'a Value);

/// A histogram of times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    bounds_s: Vec<f64>,
    /// The number of times in each bucket; the last one counts times above all bounds.
    buckets: Vec<u64>,
}

impl Snapshot {
    /// Reads a line; `None` if it is not a frame.
    pub(crate) fn parse(line: &[u8]) -> Option<Snapshot> {
        let frame: Value = serde_json::from_slice(line).ok()?;
        let metrics = frame["metrics"]["metrics"].as_array()?;
        let name = |row: &Value| row["name"].as_str().map(str::to_owned);
        let rows = metrics.iter().enumerate();
        let rows = rows.filter_map(|(index, row)| Some((name(row)?, index)));
        let rows = rows.collect();
        Some(Snapshot { frame, rows })
    }

    /// The answer to `status`.
    pub(crate) fn status(&self) -> &Value {
        &self.frame["status"]
    }

    /// The time of its creation, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.frame["metrics"]["unix_ms"]
            .as_f64()
            .unwrap_or_default()
            / 1000.0
    }

    /// The samples of a row.
    pub(crate) fn samples(&self, row: &str) -> impl Iterator<Item = Sample<'_>> {
        let index = self.rows.get(row);
        let row = index.map(|index| &self.frame["metrics"]["metrics"][*index]["samples"]);
        let samples = row.and_then(Value::as_array);
        samples.into_iter().flatten().map(Sample)
    }

    /// The sum of a row's samples with all of these labels.
    pub(crate) fn sum(&self, row: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.samples(row).filter(|sample| sample.has(labels));
        // Without this start value the sum of no samples would be -0.
        samples.fold(0.0, |sum, sample| sum + sample.value())
    }

    /// The distinct values of a label of a row, in order.
    pub(crate) fn labels(&self, row: &str, label: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for sample in self.samples(row) {
            let value = sample.label(label).to_owned();
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    }

    /// The histogram of a row's samples with all of these labels, since `before`.
    pub(crate) fn times(&self, before: &Snapshot, row: &str, labels: &[(&str, &str)]) -> Times {
        let now = self.all_times(row, labels);
        let then = before.all_times(row, labels);
        let count = |index: usize| then.buckets.get(index).copied().unwrap_or_default();
        let buckets = now.buckets.iter().enumerate();
        // A restarted serving process counts from 0.
        let buckets =
            buckets.map(|(index, times)| times.checked_sub(count(index)).unwrap_or(*times));
        Times {
            buckets: buckets.collect(),
            bounds_s: now.bounds_s,
        }
    }

    fn all_times(&self, row: &str, labels: &[(&str, &str)]) -> Times {
        let bounds = self.frame["metrics"]["bounds_s"].as_array();
        let bounds_s: Vec<f64> = bounds
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        let mut buckets = vec![0; bounds_s.len() + 1];
        for sample in self.samples(row).filter(|sample| sample.has(labels)) {
            let own = sample.0["buckets"].as_array().into_iter().flatten();
            for (sum, times) in buckets.iter_mut().zip(own) {
                *sum += times.as_u64().unwrap_or_default();
            }
        }
        Times { bounds_s, buckets }
    }

    /// The growth of a row per second since `before`.
    pub(crate) fn rate(&self, before: &Snapshot, row: &str, labels: &[(&str, &str)]) -> f64 {
        let (now, then) = (self.sum(row, labels), before.sum(row, labels));
        let seconds = self.seconds() - before.seconds();
        match seconds > 0.0 {
            // A restarted serving process counts from 0.
            true if now < then => now / seconds,
            true => (now - then) / seconds,
            false => 0.0,
        }
    }
}

impl Sample<'_> {
    /// The value of a label; empty if there is none.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.0["labels"][name].as_str().unwrap_or_default()
    }

    /// The value of a count or a level.
    pub(crate) fn value(&self) -> f64 {
        self.0["value"].as_f64().unwrap_or_default()
    }

    /// Whether it has all of these labels.
    pub(crate) fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.label(name) == *value)
    }
}

impl Times {
    /// The time in seconds that this share of all times does not exceed, by linear interpolation in
    /// a bucket; `None` if there are no times.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        let count: u64 = self.buckets.iter().sum();
        let rank = count as f64 * percent / 100.0;
        let mut passed = 0.0;
        for (index, times) in self.buckets.iter().enumerate() {
            let times = *times as f64;
            if times > 0.0 && passed + times >= rank {
                let low = match index {
                    0 => 0.0,
                    index => self.bounds_s[index - 1],
                };
                let high = self.bounds_s.get(index).copied().unwrap_or(low);
                return Some(low + (high - low) * (rank - passed) / times);
            }
            passed += times;
        }
        None
    }
}
