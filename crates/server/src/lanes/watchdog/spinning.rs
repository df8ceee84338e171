//! Lanes that spin: silent ones whose thread works all the time. They never come round again, and
//! have what they hold for themselves: connections that nobody serves, and a CPU.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use turnpike_lane::sys::process::thread_cpu_ns;

use super::report::thread_state;
use super::{LaneView, Silent};

/// Silence of a working thread after which its lane is given up: no round works for so long, since
/// all that takes time has a limit or a thread of its own.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5);

/// The least part of that time that the thread has worked: others may want the CPU too. One that
/// waits, for a disk or in the hands of a debugger, has worked for none of it.
const WORKED_PART: u32 = 8;

/// What is known of silent lanes.
#[derive(Default)]
pub(super) struct Spinning(BTreeMap<usize, Round>);

struct Round {
    /// When the lane's last round had begun.
    round_ns: u64,
    /// Since when it is watched, and what its thread had worked by then.
    since: Instant,
    cpu_ns: u64,
    is_given_up: bool,
}

impl Spinning {
    /// Looks at the silent lanes; returns those that are given up now.
    pub(super) fn look(&mut self, view: &LaneView<'_>, silent: &[Silent]) -> Vec<usize> {
        self.0
            .retain(|lane, _| silent.iter().any(|one| one.lane == *lane));
        let lanes = silent.iter().map(|one| one.lane);
        lanes.filter(|lane| self.spins(view, *lane)).collect()
    }

    /// Whether a lane was given up, and has not come round since.
    pub(super) fn contains(&self, lane: usize) -> bool {
        self.0.get(&lane).is_some_and(|round| round.is_given_up)
    }

    /// Whether a silent lane only waits for a CPU: its thread could work, and was let work for next
    /// to nothing of the time that it is watched.
    pub(super) fn is_starved(&self, view: &LaneView<'_>, lane: usize) -> bool {
        let facts = view.lanes.get(lane).and_then(|lane| lane.facts());
        let (Some(facts), Some(round)) = (facts, self.0.get(&lane)) else {
            return false;
        };
        thread_cpu_ns(facts.thread).is_ok_and(|cpu_ns| {
            let worked = Duration::from_nanos(cpu_ns.saturating_sub(round.cpu_ns));
            waits_for_cpu(&thread_state(facts.thread), worked, round.since.elapsed())
        })
    }

    fn spins(&mut self, view: &LaneView<'_>, lane: usize) -> bool {
        let round_ns = view.board.last_round_ns(lane);
        let facts = view.lanes.get(lane).and_then(|lane| lane.facts());
        let Some(cpu_ns) = facts.and_then(|facts| thread_cpu_ns(facts.thread).ok()) else {
            return false;
        };
        let now = Instant::now();
        let fresh = || Round {
            round_ns,
            since: now,
            cpu_ns,
            is_given_up: false,
        };
        let round = self.0.entry(lane).or_insert_with(fresh);
        if round.round_ns != round_ns {
            *round = fresh();
        }
        let watched = now - round.since;
        if round.is_given_up || watched < GIVEN_UP_AFTER {
            return false;
        }
        let worked = Duration::from_nanos(cpu_ns.saturating_sub(round.cpu_ns));
        if worked >= watched / WORKED_PART {
            round.is_given_up = true;
        } else {
            *round = fresh();
        }
        round.is_given_up
    }
}

/// Whether a thread in this state, which has worked for so much of a time, waits for a CPU.
fn waits_for_cpu(state: &str, worked: Duration, watched: Duration) -> bool {
    state == "running" && worked < watched / WORKED_PART
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::waits_for_cpu;

    #[test]
    fn a_thread_that_could_work_and_does_not_waits_for_a_cpu() {
        for (state, worked_ms, expected) in [
            ("running", 0, true),
            ("running", 124, true),
            ("running", 125, false),
            ("sleeping", 0, false),
            ("disk sleep", 0, false),
            ("tracing stop", 0, false),
            ("unknown", 0, false),
        ] {
            let worked = Duration::from_millis(worked_ms);
            let waits = waits_for_cpu(state, worked, Duration::from_secs(1));
            assert_eq!(waits, expected, "{state}, {worked_ms} ms of a second");
        }
    }
}
