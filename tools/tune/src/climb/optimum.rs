//! The best of the whole grid of levels, and how near to it a climb has come.
//!
//! Every combination is run once. The better quarter is run again, and so on, so that runs go where
//! they decide something (successive halving: K. Jamieson and A. Talwalkar, 2016). Who was best by
//! these runs was lucky too, so the ratio comes from new runs of both, by turns.

use super::knobs::Levels;
use super::search::{Bench, Candidate, Effort, Failure, Tried, compare};

/// How many of the combinations go on after each round.
const SHARE: usize = 4;
/// Combinations among which the mean of all their runs decides.
const LAST: usize = 4;

/// The best combination.
#[derive(Clone, Debug)]
pub(crate) struct Optimum {
    pub(crate) levels: Levels,
    /// Combinations that gave a figure.
    pub(crate) combinations: usize,
    /// The end of the climb against it; `None` where they are the same.
    pub(crate) end: Option<Tried>,
}

/// Finds the best combination and compares the end of a climb with it.
///
/// # Errors
/// Of the bench.
pub(crate) fn find(
    bench: &mut dyn Bench,
    end: Levels,
    effort: Effort,
    mut report: impl FnMut(usize),
) -> Result<Optimum, Failure> {
    let mut left: Vec<Ranked> = Levels::grid().into_iter().map(Ranked::new).collect();
    let mut combinations = left.len();
    loop {
        report(left.len());
        let mut possible = Vec::with_capacity(left.len());
        for mut ranked in left {
            match bench.run(ranked.levels) {
                Ok(run) => {
                    ranked.rates.push(run.connections_per_s);
                    possible.push(ranked);
                }
                Err(Failure::Levels(_)) => combinations -= 1,
                Err(failure) => return Err(failure),
            }
        }
        possible.sort_by(|a, b| b.mean().total_cmp(&a.mean()));
        left = possible;
        if left.len() <= LAST {
            break;
        }
        left.truncate(left.len().div_ceil(SHARE).max(LAST));
    }
    let best = left.first().map_or(end, |ranked| ranked.levels);
    let whole = Effort {
        pairs: effort.pairs_max,
        ..effort
    };
    let candidate = Candidate {
        text: "the end of the climb".to_owned(),
        knobs: Vec::new(),
        levels: end,
    };
    let end = if best == end {
        None
    } else {
        Some(compare(bench, best, &candidate, whole)?)
    };
    Ok(Optimum {
        levels: best,
        combinations,
        end,
    })
}

/// A combination with the rates of its runs.
struct Ranked {
    levels: Levels,
    rates: Vec<f64>,
}

impl Ranked {
    fn new(levels: Levels) -> Ranked {
        Ranked {
            levels,
            rates: Vec::new(),
        }
    }

    fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests;
