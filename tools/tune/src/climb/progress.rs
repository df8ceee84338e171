//! What a climb shows while it runs: which step of how many, its pairs of runs so far with the mean
//! ratio, and about how much time is left. At a terminal it is a line that each text replaces,
//! elsewhere a line for each step.

use std::time::{Duration, Instant};

use turnpike_load::progress_line::{ProgressLine, bar};

use super::judge::Verdict;
use super::knobs::Levels;
use super::search::{Bench, Failure, Run};

/// The length of the bar.
const BAR_CHARACTERS: usize = 20;

/// A bench that says how far its climb is.
pub(super) struct Shown<'a> {
    bench: &'a mut dyn Bench,
    line: Option<ProgressLine>,
    begun: Instant,
    state: State,
}

/// How far a climb is.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    /// The step that is tried, from 1; 0 while the start is measured.
    step: usize,
    steps: usize,
    text: String,
    pairs: usize,
    pairs_max: usize,
    /// Mean of the new rate by the old one.
    ratio: Option<f64>,
    /// Runs that have ended, and those of the steps that have.
    runs: usize,
    runs_of_steps: usize,
}

impl<'a> Shown<'a> {
    /// Shows the climb of a bench; says at once that it begins.
    pub(super) fn new(bench: &'a mut dyn Bench) -> Shown<'a> {
        let mut shown = Shown {
            bench,
            line: ProgressLine::on_terminal(),
            begun: Instant::now(),
            state: State::default(),
        };
        if shown.line.is_none() {
            eprintln!("measuring the start");
        }
        shown.show();
        shown
    }

    fn show(&mut self) {
        let elapsed = self.begun.elapsed();
        if let Some(line) = &mut self.line {
            line.show(&self.state.line(elapsed));
        }
    }
}

impl State {
    /// The line after so much time.
    fn line(&self, elapsed: Duration) -> String {
        if self.step == 0 {
            let empty = bar(0.0, BAR_CHARACTERS);
            return format!("{empty} measuring the start");
        }
        let done = (self.step - 1) as f64 + self.share_of_step();
        let bar = bar(done / self.steps.max(1) as f64, BAR_CHARACTERS);
        let ratio = self.ratio.map(|ratio| format!(", x {ratio:.2} so far"));
        let left_s = self.left(elapsed).as_secs();
        format!(
            "{bar} step {} of {}, pair {} of at most {}{}, about {}:{:02} left: {}",
            self.step,
            self.steps,
            self.pairs + 1,
            self.pairs_max,
            ratio.unwrap_or_default(),
            left_s / 60,
            left_s % 60,
            self.text
        )
    }

    fn share_of_step(&self) -> f64 {
        self.pairs as f64 / self.pairs_max.max(1) as f64
    }

    /// About how long the steps that are left take: as many runs as those before took, or half of
    /// the most where none has ended.
    fn left(&self, elapsed: Duration) -> Duration {
        let run_s = elapsed.as_secs_f64() / self.runs.max(1) as f64;
        let ended = self.step - 1;
        let each = match ended {
            0 => self.pairs_max as f64,
            ended => self.runs_of_steps as f64 / ended as f64,
        };
        let steps = self.steps.saturating_sub(ended) as f64;
        let runs = each * steps - (self.runs - self.runs_of_steps) as f64;
        Duration::try_from_secs_f64(runs * run_s).unwrap_or_default()
    }
}

impl Bench for Shown<'_> {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        self.show();
        let result = self.bench.run(levels);
        self.state.runs += 1;
        result
    }

    fn left_out(&self, now: Levels, levels: Levels) -> Option<String> {
        self.bench.left_out(now, levels)
    }

    fn judged(&mut self, verdict: Verdict, now: Levels) {
        self.state.runs_of_steps = self.state.runs;
        // What follows on the terminal begins a line.
        if let Some(line) = &mut self.line {
            line.show("");
        }
        self.bench.judged(verdict, now);
    }

    fn begins(&mut self, step: usize, steps: usize, text: &str) {
        self.state.step = step;
        self.state.steps = steps;
        text.clone_into(&mut self.state.text);
        self.paired(0, 0, None);
        if self.line.is_none() {
            eprintln!("step {step} of {steps}: {text}");
        }
    }

    fn paired(&mut self, pairs: usize, pairs_max: usize, ratio: Option<f64>) {
        self.state.pairs = pairs;
        self.state.pairs_max = pairs_max;
        self.state.ratio = ratio;
        self.show();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_a_climb_is() {
        let mut state = State::default();
        let elapsed = Duration::from_secs(40);
        let start = "-------------------- measuring the start";
        assert_eq!(state.line(elapsed), start);
        state = State {
            step: 1,
            steps: 10,
            text: "accept_mutex off".to_owned(),
            pairs: 4,
            pairs_max: 8,
            ratio: Some(1.053),
            // Two seconds each.
            runs: 20,
            runs_of_steps: 0,
        };
        let first = "#------------------- step 1 of 10, pair 5 of at most 8, x 1.05 so far, \
                     about 2:00 left: accept_mutex off";
        assert_eq!(state.line(elapsed), first);
        state.step = 6;
        state.runs_of_steps = 20;
        state.ratio = None;
        let later = "###########--------- step 6 of 10, pair 5 of at most 8, about 0:40 left: \
                     accept_mutex off";
        assert_eq!(state.line(elapsed), later);
    }
}
