//! What a machine's facts mean for connections per second: a row for each thing that can be found.
//!
//! A row says what it is, why it matters and what to do; its function looks at the facts and gives
//! the evidence. The command's output, its explanations, docs/tune.md and the plan all derive from
//! the rows. Functions are pure: facts in, evidence out.

mod folklore;
mod limits;
mod network;
mod processors;
mod queues;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use network::{cards, queue_interrupts};

use crate::facts::Facts;
use crate::row::{Row, Seen};

/// A row that applies to a machine.
pub(crate) struct Finding {
    pub(crate) row: &'static Row,
    pub(crate) seen: Seen,
    /// Why the fix cannot be made here; `None` where it can.
    pub(crate) obstacle: Option<String>,
}

/// All rows, by area.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    let areas = [
        queues::ROWS,
        limits::ROWS,
        server::ROWS,
        network::ROWS,
        processors::ROWS,
        folklore::ROWS,
    ];
    areas.into_iter().flatten()
}

/// The row of this name.
pub(crate) fn row(id: &str) -> Option<&'static Row> {
    rows().find(|row| row.id == id)
}

/// What is found on a machine, the worst first.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let found = rows().filter_map(|row| {
        let seen = (row.find)(facts)?;
        let obstacle = obstacle(facts, &seen);
        Some(Finding {
            row,
            seen,
            obstacle,
        })
    });
    let mut found: Vec<Finding> = found.collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.seen.severity));
    found
}

/// Why none of a finding's changes can be made here.
fn obstacle(facts: &Facts, seen: &Seen) -> Option<String> {
    let obstacles = seen.changes.iter().map(|change| change.obstacle(facts));
    let obstacles: Option<Vec<String>> = obstacles.collect();
    obstacles?.into_iter().next()
}
