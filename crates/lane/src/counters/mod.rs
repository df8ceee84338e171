//! Counters: a table of what is counted, and cells that each lane writes alone.
//!
//! A lane adds with a load and a store, without any locked instruction, and shares no cache line
//! with another lane; whoever wants totals reads the cells of all lanes and sums. Reading stops
//! nobody, so that sums over several cells are only about right while lanes run.
//!
//! Crates that count something of their own declare their own set with [`crate::metric_set!`].

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

mod lane;
#[cfg(test)]
mod tests;

pub use lane::LaneMetric;

/// Most lanes of one set: far more than any machine has CPUs, against a wrong argument.
pub const LANES_MAX: usize = 4096;

/// Whether a value only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while the process lives.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// One row of a table of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name: lower case words and underscores, the same everywhere it is shown.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// What is counted: `connections`, `bytes`, ...
    pub unit: &'static str,
    /// Names of what tells several values of it apart, beside the lane: `upstream`, `zone`, ...
    pub labels: &'static [&'static str],
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// A closed set of metrics; made by [`crate::metric_set!`].
pub trait MetricSet: Copy + 'static {
    /// The table, in the order of [`MetricSet::index`].
    const ROWS: &'static [Row];

    /// All members, in the same order.
    const ALL: &'static [Self];

    /// The member's place in the table.
    fn index(self) -> usize;

    /// The member's row.
    fn row(self) -> &'static Row {
        &Self::ROWS[self.index()]
    }
}

/// Declares an enum of metrics with its table: name of the variant, kind, name, unit, help.
#[macro_export]
macro_rules! metric_set {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $set:ident {
            $($variant:ident: $kind:ident $name:literal in $unit:literal, $help:literal;)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        $visibility enum $set {
            $(#[doc = $help] $variant,)+
        }

        impl $crate::counters::MetricSet for $set {
            const ROWS: &'static [$crate::counters::Row] = &[
                $($crate::counters::Row {
                    name: $name,
                    kind: $crate::counters::Kind::$kind,
                    unit: $unit,
                    labels: &[],
                    help: $help,
                },)+
            ];
            const ALL: &'static [$set] = &[$($set::$variant,)+];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// Sixteen cells: two cache lines, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; CELLS_PER_LINE]);

const CELLS_PER_LINE: usize = 16;

/// The cells of one set for all lanes, to be read by anybody.
#[derive(Debug)]
pub struct Counters<M> {
    lanes: Arc<[Box<[Line]>]>,
    set: PhantomData<M>,
}

impl<M> Clone for Counters<M> {
    /// The same cells once more.
    fn clone(&self) -> Counters<M> {
        Counters {
            lanes: Arc::clone(&self.lanes),
            set: PhantomData,
        }
    }
}

impl<M: MetricSet> Counters<M> {
    /// Makes zeroed cells for `lanes` lanes, at most [`LANES_MAX`], and hands out their writers:
    /// one a lane, so that no cell has two.
    pub fn new(lanes: usize) -> (Counters<M>, Vec<LaneCounters<M>>) {
        let lines = M::ROWS.len().div_ceil(CELLS_PER_LINE);
        let cells = || (0..lines).map(|_| Line::default()).collect();
        let lanes: Arc<[Box<[Line]>]> = (0..lanes.min(LANES_MAX)).map(|_| cells()).collect();
        let writer = |lane| LaneCounters {
            lanes: Arc::clone(&lanes),
            lane,
            set: PhantomData,
            one_thread: PhantomData,
        };
        let writers = (0..lanes.len()).map(writer).collect();
        (
            Counters {
                lanes,
                set: PhantomData,
            },
            writers,
        )
    }

    /// How many lanes there are.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// The value of one lane; 0 for a lane that does not exist.
    pub fn lane(&self, lane: usize, metric: M) -> u64 {
        self.lanes
            .get(lane)
            .map_or(0, |cells| cell(cells, metric).load(Ordering::Relaxed))
    }

    /// The sum over all lanes. Of a gauge, which lanes may count down elsewhere than up, the
    /// intermediate wrap-arounds cancel out.
    pub fn total(&self, metric: M) -> u64 {
        (0..self.lanes.len()).fold(0, |sum, lane| sum.wrapping_add(self.lane(lane, metric)))
    }

    /// Every row with its total, in the table's order.
    pub fn totals(&self) -> impl Iterator<Item = (&'static Row, u64)> + '_ {
        M::ALL
            .iter()
            .map(|metric| (metric.row(), self.total(*metric)))
    }
}

/// One lane's own cells. May be sent to the lane's thread, but not shared between threads.
#[derive(Debug)]
pub struct LaneCounters<M> {
    lanes: Arc<[Box<[Line]>]>,
    lane: usize,
    set: PhantomData<M>,
    one_thread: PhantomData<Cell<()>>,
}

impl<M: MetricSet> LaneCounters<M> {
    /// Counts `amount` more.
    pub fn add(&self, metric: M, amount: u64) {
        let cell = cell(&self.lanes[self.lane], metric);
        cell.store(
            cell.load(Ordering::Relaxed).wrapping_add(amount),
            Ordering::Relaxed,
        );
    }

    /// Counts one more.
    pub fn increment(&self, metric: M) {
        self.add(metric, 1);
    }

    /// Counts `amount` less; of a gauge.
    pub fn subtract(&self, metric: M, amount: u64) {
        self.add(metric, amount.wrapping_neg());
    }

    /// Sets the value; of a gauge.
    pub fn set(&self, metric: M, value: u64) {
        cell(&self.lanes[self.lane], metric).store(value, Ordering::Relaxed);
    }

    /// The lane's own value.
    pub fn value(&self, metric: M) -> u64 {
        cell(&self.lanes[self.lane], metric).load(Ordering::Relaxed)
    }
}

fn cell<M: MetricSet>(cells: &[Line], metric: M) -> &AtomicU64 {
    let index = metric.index();
    &cells[index / CELLS_PER_LINE].0[index % CELLS_PER_LINE]
}
