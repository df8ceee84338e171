//! What a climb has to reach: most of the settings with a bad start found, and a rate that cannot
//! be told from the best of the grid. Pure, so that a record is judged as its climb was.

use std::fmt::Write as _;

use serde::Serialize;

use super::judge::Verdict;
use super::knobs::Knob;
use super::optimum::Optimum;
use super::search::{Climbed, Ratio};
use crate::report::wrapped;

/// The version of the JSON object.
const SCHEMA: &str = "turnpike-tune-goals/1";
/// Of the seven settings, those that a climb has to find. On few CPUs two of them change nothing:
/// one worker has nobody to take turns with, and no SYN is answered by a cookie while the queue has
/// room.
const FOUND_MIN: usize = 5;
/// What the 95 % interval of the ratio of the end to the best has to reach.
const RATIO_MIN: f64 = 0.95;

/// How far a climb has come.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Reached {
    schema: &'static str,
    server: String,
    /// Of the seven settings, those that are no longer at their start, and the others.
    found: Vec<&'static str>,
    not_found: Vec<&'static str>,
    found_min: usize,
    enough_found: bool,
    /// The best levels of the grid, and how many combinations gave a figure.
    best: Vec<&'static str>,
    combinations: usize,
    /// The settings in which the end differs from the best; if none, there are no ratios.
    differing: Vec<&'static str>,
    pairs: usize,
    rate: Option<Bounded>,
    cpu: Option<Bounded>,
    /// The load generator was the limit, so that the CPU time has to reach the ratio too.
    client_limited: bool,
    ratio_min: f64,
    near_best: bool,
    reached: bool,
}

/// A ratio of the end to the best, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Bounded {
    ratio: f64,
    low: f64,
    high: f64,
}

impl From<Ratio> for Bounded {
    fn from(ratio: Ratio) -> Bounded {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        Bounded {
            ratio: rounded(ratio.mean),
            low: rounded(ratio.bounds.low),
            high: rounded(ratio.bounds.high),
        }
    }
}

impl Bounded {
    fn text(self) -> String {
        format!("x {:.3} [{:.3}, {:.3}]", self.ratio, self.low, self.high)
    }
}

impl Reached {
    /// Judges the end of a climb.
    pub(crate) fn of(server: &str, climbed: &Climbed, optimum: &Optimum) -> Reached {
        let names = |is_wanted: &dyn Fn(Knob) -> bool| {
            let knobs = Knob::SEVEN.into_iter().filter(|knob| is_wanted(*knob));
            knobs.map(Knob::name).collect::<Vec<&'static str>>()
        };
        let levels = climbed.levels;
        let found = names(&|knob| levels.level(knob) != 0);
        let differing = Knob::ALL
            .into_iter()
            .filter(|knob| levels.level(*knob) != optimum.levels.level(*knob));
        let end = optimum.end.as_ref();
        let rate = end.and_then(|end| end.bounds.map(|bounds| (end.ratio, bounds)));
        let rate = rate.map(|(mean, bounds)| Ratio { mean, bounds });
        let cpu = end.and_then(|end| end.cpu);
        let client_limited = end.is_some_and(|end| end.client_limited);
        // Before rounding, and never by runs with errors, whose rates say nothing.
        let is_near = |ratio: Option<Ratio>| ratio.is_some_and(|r| r.bounds.high >= RATIO_MIN);
        let near_best = end.is_none_or(|end| {
            end.verdict != Verdict::Errors && is_near(rate) && (!client_limited || is_near(cpu))
        });
        let enough_found = found.len() >= FOUND_MIN;
        Reached {
            schema: SCHEMA,
            server: server.to_owned(),
            not_found: names(&|knob| levels.level(knob) == 0),
            found,
            found_min: FOUND_MIN,
            enough_found,
            best: Knob::SEVEN
                .map(|knob| knob.levels()[optimum.levels.level(knob)])
                .to_vec(),
            combinations: optimum.combinations,
            differing: differing.map(Knob::name).collect(),
            pairs: end.map_or(0, |end| end.pairs),
            rate: rate.map(Bounded::from),
            cpu: cpu.map(Bounded::from),
            client_limited,
            ratio_min: RATIO_MIN,
            near_best,
            reached: enough_found && near_best,
        }
    }

    /// Whether all goals are reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.reached
    }

    /// The JSON object.
    pub(crate) fn json(&self) -> String {
        // Numbers, names and lists only, which JSON always holds.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// In words.
    pub(crate) fn text(&self, width: usize) -> String {
        let met = |is_met: bool| if is_met { "met" } else { "missed" };
        let mut text = "\nThe goals:\n\n".to_owned();
        let all = self.found.len() + self.not_found.len();
        let mut found = format!("{} of {all} bad settings found", self.found.len());
        if !self.not_found.is_empty() {
            let _ = write!(found, " (not {})", self.not_found.join(", "));
        }
        let _ = write!(
            found,
            ", goal at least {}: {}",
            self.found_min,
            met(self.enough_found)
        );
        text.push_str(&wrapped(&found, 2, width));
        let goal = format!("the interval has to reach {}", self.ratio_min);
        let near = met(self.near_best);
        let near = format!("{}, {goal}: {near}", self.ratios());
        text.push_str(&wrapped(&near, 2, width));
        text.push_str(if self.reached {
            "\nThe goals are reached.\n"
        } else {
            "\nThe goals are missed.\n"
        });
        text
    }

    /// The end beside the best.
    fn ratios(&self) -> String {
        let count = self.combinations;
        if self.differing.is_empty() {
            return format!("the end is the best of {count} combinations");
        }
        let Some(rate) = self.rate else {
            return format!("no rate beside the best of {count} combinations");
        };
        let mut text = format!(
            "rate beside the best of {count} combinations: {}",
            rate.text()
        );
        if self.client_limited {
            text.push_str("; the client was the limit, so CPU time counts too");
        }
        match self.cpu {
            Some(cpu) => text + &format!("; by CPU time {}", cpu.text()),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests;
