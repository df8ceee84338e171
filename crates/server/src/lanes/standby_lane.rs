//! The stand-by lane: one lane more, for as long as none of the others works.
//!
//! Where at least one lane works, it accepts for those that do not (`watchdog`). With one lane, or
//! with a fault that meets them all, there is nobody who could: then a lane is started that takes
//! every gate, and leaves as a lane leaves that a reload has no place for.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::steering::Beat;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_protocols::{Apply, Command, Leave, Plans};

use super::lane::Lane;
use super::service::{LaneService, gates_of_all};

/// Silence of the stand-by lane that says of the whole process that it hangs.
const STUCK_AFTER: Duration = Duration::from_secs(10);

impl LaneService {
    /// Starts the stand-by lane where it is wanted, and lets it leave when another lane works.
    pub(super) fn start_or_end_standby_lane(&mut self) {
        let Some(log) = self.watchdog.log().cloned() else {
            return;
        };
        let is_wanted = match self.view() {
            Some(view) => self.watchdog.needs_standby_lane(&view),
            None => false,
        };
        let works = |lane: &usize| !self.watchdog.is_silent(*lane);
        if is_wanted && self.standby_lane.is_none() {
            self.start_standby_lane(&log);
        } else if self.standby_lane.is_some()
            && let Some(lane) = (0..self.lanes.len()).find(works)
        {
            self.end_standby_lane(lane, &log);
        }
    }

    /// Has the stand-by lane serve by a configuration that has just come.
    pub(super) fn apply_to_standby_lane(&self, plan: &Plans) {
        if let Some(standby_lane) = &self.standby_lane {
            let apply = self.standby_lane_apply(plan);
            standby_lane.apply(apply);
        }
    }

    fn start_standby_lane(&mut self, log: &ErrorLog) {
        let Some(plan) = self.plan.clone() else {
            return;
        };
        let start = self.lane_start(log);
        let number = self.lanes.len();
        let apply = self.standby_lane_apply(&plan);
        match Lane::start(number, None, start, apply) {
            Ok(lane) => {
                let view = self.view();
                let are_starved = view.is_some_and(|view| self.watchdog.are_starved(&view));
                self.standby_lane = Some(lane);
                self.watchdog.standby_lane_started(number, are_starved);
                for (number, lane) in self.lanes.iter().enumerate() {
                    self.watchdog.report(number, lane, &self.counters);
                }
            }
            // It is tried again at the next look.
            Err(error) => log.event(
                Level::Alert,
                format_args!("no lane works, and none can be started ({error})"),
            ),
        }
    }

    fn end_standby_lane(&mut self, working: usize, log: &ErrorLog) {
        let (Some(standby_lane), Some(plan)) = (self.standby_lane.take(), self.plan.clone()) else {
            return;
        };
        let number = self.lanes.len();
        log.event(
            Level::Notice,
            format_args!("lane {working} works again; the stand-by lane {number} ends"),
        );
        let successors = self.lanes.iter().enumerate();
        let successors = successors.filter(|(lane, _)| !self.watchdog.is_silent(*lane));
        // Nobody waits for it to have left.
        let (done, _) = sync_channel(1);
        standby_lane.send(Command::Leave(Box::new(Leave {
            plans: plan,
            successors: successors.map(|(_, lane)| lane.mailbox()).collect(),
            done,
        })));
        self.leaving.push(standby_lane);
    }

    /// Whether none of the lanes works, and the stand-by lane has not for long either.
    pub(super) fn is_stuck(&self) -> bool {
        let (Some(board), Some(_)) = (&self.board, &self.standby_lane) else {
            return false;
        };
        match board.beat(self.lanes.len()) {
            Beat::Awake { since_ns } => {
                let age_ns = monotonic_ns().saturating_sub(since_ns);
                Duration::from_nanos(age_ns) >= STUCK_AFTER
            }
            Beat::Asleep | Beat::Gone => false,
        }
    }

    /// What a lane does at this moment, in a word.
    pub(super) fn lane_state(&self, number: usize) -> &'static str {
        if number > self.lanes.len() || (number == self.lanes.len() && self.standby_lane.is_none())
        {
            return "ended";
        }
        if self.watchdog.is_silent(number) {
            return "silent";
        }
        match self.board.as_ref().map(|board| board.beat(number)) {
            Some(Beat::Awake { .. }) => "works",
            Some(Beat::Asleep) => "waits",
            Some(Beat::Gone) | None => "unknown",
        }
    }

    /// All gates, whoever's they are.
    fn standby_lane_apply(&self, plan: &Plans) -> Apply {
        // Nobody waits for it to take them up.
        let (done, _) = sync_channel(1);
        let mut gates = gates_of_all(plan, &self.listening_sockets);
        gates.retain(|gate| self.may_open(gate));
        Apply {
            plans: plan.clone(),
            gates,
            accept: self.accept_settings(plan, self.lanes.len()),
            heartbeat: self.pulse(self.lanes.len()),
            cpus: None,
            done,
        }
    }
}
