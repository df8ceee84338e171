#![allow(clippy::unwrap_used)]

use super::*;
use crate::climb::knobs::Knob;
use crate::climb::search::Run;

/// A server that some levels make faster, and that one level stops; its runs differ by 2 %.
struct Server(usize);

impl Bench for Server {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        self.0 += 1;
        if levels.level(Knob::AcceptMutex) == 2 {
            return Err(Failure::Levels("not here".to_owned()));
        }
        let gain = |knob: Knob, gains: [f64; 3]| gains[levels.level(knob)];
        let rate = 1000.0
            * gain(Knob::Workers, [1.0, 2.0, 1.5])
            * gain(Knob::AccessLog, [1.0, 1.2, 1.3])
            * gain(Knob::Backlog, [1.0, 1.4, 0.0])
            * (1.0 + (self.0 % 3) as f64 / 100.0);
        Ok(Run {
            connections_per_s: rate,
            answered: 1000,
            ..Run::default()
        })
    }
}

const EFFORT: Effort = Effort {
    pairs: 4,
    pairs_min: 0,
    pairs_max: 9,
    pairs_without_gain_max: 16,
    early_factor: 1.68,
    p99_factor_max: 3.0,
    has_all_knobs: false,
};

#[test]
fn the_best_of_all_combinations_is_found() {
    let mut rounds = Vec::new();
    let end = Levels::default().with(Knob::Workers, 1);
    let optimum = find(&mut Server(0), end, EFFORT, |left| rounds.push(left)).unwrap();
    let level = |knob: Knob| optimum.levels.level(knob);
    assert_eq!(
        [Knob::Workers, Knob::AccessLog, Knob::Backlog].map(level),
        [1, 2, 1]
    );
    // A third of the combinations is not possible.
    assert_eq!(Levels::grid().len(), 432);
    assert_eq!(optimum.combinations, 288);
    assert_eq!(rounds, [432, 72, 18, 5, 4]);
    let tried = optimum.end.unwrap();
    assert_eq!(tried.pairs, EFFORT.pairs_max);
    let expected = 1.0 / 1.3 / 1.4;
    assert!((tried.ratio - expected).abs() < 0.02, "{tried:?}");
}

#[test]
fn a_climb_that_ends_at_the_best_needs_no_comparison() {
    let best = find(&mut Server(0), Levels::default(), EFFORT, |_| {}).unwrap();
    let again = find(&mut Server(0), best.levels, EFFORT, |_| {}).unwrap();
    assert_eq!(again.levels, best.levels);
    assert!(again.end.is_none());
}
