//! The metrics table: the metrics, and the readers of their values.
//!
//! Values are stored where they are counted, in cells of each lane or atomics of a zone; a
//! [`Reader`] only reads them. The `metrics` page and the control socket call every reader of the
//! plan in force. A metric without a row cannot be shown, so the reference of all metrics is
//! complete.

mod json;
mod prometheus;

use std::collections::HashMap;
use std::sync::Arc;

pub use json::write as write_json;
pub use prometheus::{Format, reference_name, write as write_prometheus};
pub use turnpike_lane::counters::{Kind, Row};

use turnpike_lane::counters::Distribution;

/// A reader of the current values of some rows.
pub trait Reader: Send + Sync {
    /// Adds a sample for every value. It is called from any thread, and must not block lanes.
    fn read(&self, samples: &mut Samples);
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The row.
    pub row: &'static Row,
    /// The names and values of its labels, in the row's order, without those that were summed over.
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

impl Sample {
    /// The value of a label; empty if there is none.
    pub fn label(&self, name: &str) -> &str {
        let mut labels = self.labels.iter();
        let found = labels.find_map(|(label, value)| (*label == name).then_some(value));
        found.map_or("", String::as_str)
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count or a level.
    Number(u64),
    /// A ratio or seconds.
    Real(f64),
    /// Times.
    Distribution(Distribution),
    /// Values in buckets of the user's own.
    Buckets(Buckets),
}

/// How values of any kind are distributed, in buckets whose bounds the configuration names.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// The finite bounds, ascending.
    pub bounds: Vec<f64>,
    /// How many values are up to each bound.
    pub counts: Vec<u64>,
    /// How many values there are.
    pub count: u64,
    /// Their sum; `None` where it may fall.
    pub sum: Option<f64>,
}

impl Buckets {
    /// Adds those of another one with the same bounds.
    fn add(&mut self, other: &Self) {
        if self.bounds != other.bounds {
            return;
        }
        for (sum, more) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.saturating_add(*more);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.zip(other.sum).map(|(sum, more)| sum + more);
    }
}

impl Value {
    /// Adds another value of the same kind.
    fn add(&mut self, other: &Value) {
        match (self, other) {
            (Value::Number(sum), Value::Number(more)) => *sum = sum.saturating_add(*more),
            (Value::Real(sum), Value::Real(more)) => *sum += more,
            (Value::Distribution(sum), Value::Distribution(more)) => sum.add(more),
            (Value::Buckets(sum), Value::Buckets(more)) => sum.add(more),
            _ => {}
        }
    }
}

/// A list of samples.
#[derive(Default)]
pub struct Samples {
    list: Vec<Sample>,
}

impl Samples {
    /// The samples of these readers, in their order.
    pub fn of<'a>(readers: impl IntoIterator<Item = &'a Arc<dyn Reader>>) -> Self {
        let mut samples = Self::default();
        for reader in readers {
            reader.read(&mut samples);
        }
        samples
    }

    /// Adds a count or a level. `labels` has a value for each of the row's labels.
    pub fn number(&mut self, row: &'static Row, labels: &[&str], value: u64) {
        self.add(row, labels, Value::Number(value));
    }

    /// Adds a ratio or seconds.
    pub fn real(&mut self, row: &'static Row, labels: &[&str], value: f64) {
        self.add(row, labels, Value::Real(value));
    }

    /// Adds a distribution of times.
    pub fn distribution(&mut self, row: &'static Row, labels: &[&str], times: Distribution) {
        self.add(row, labels, Value::Distribution(times));
    }

    /// Adds values in buckets of the user's own.
    pub fn buckets(&mut self, row: &'static Row, labels: &[&str], buckets: Buckets) {
        self.add(row, labels, Value::Buckets(buckets));
    }

    /// Adds the samples of another reader.
    pub fn read(&mut self, reader: &dyn Reader) {
        reader.read(self);
    }

    /// The same with the values of one label summed up.
    #[must_use]
    pub fn summed_over(self, label: &str) -> Self {
        let mut summed: Vec<Sample> = Vec::new();
        let mut places = HashMap::<(&'static str, Vec<(&'static str, String)>), usize>::new();
        for mut sample in self.list {
            sample.labels.retain(|(name, _)| *name != label);
            let key = (sample.row.name, sample.labels.clone());
            match places.get(&key) {
                Some(place) => summed[*place].value.add(&sample.value),
                None => {
                    places.insert(key, summed.len());
                    summed.push(sample);
                }
            }
        }
        Self { list: summed }
    }

    /// The samples, in the order in which they were added.
    pub fn list(&self) -> &[Sample] {
        &self.list
    }

    fn add(&mut self, row: &'static Row, labels: &[&str], value: Value) {
        debug_assert_eq!(row.labels.len(), labels.len(), "{}", row.name);
        self.list.push(Sample {
            row,
            labels: row
                .labels
                .iter()
                .zip(labels)
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            value,
        });
    }
}
