//! Looks after lanes that have gone silent: a handler that loops, a disk that does not answer, a
//! thread that somebody has stopped.
//!
//! Every lane tells on the board when it begins a round and when it sleeps. One whose round takes
//! too long while connections wait at its gates is **rescued**: a lane that works watches these
//! gates too, which needs no help of the kernel, since all lanes are threads of one process. It
//! goes on until the silent lane comes round. What that one has accepted already stays with it:
//! requests on its open connections wait until it works again.
//!
//! One that spins never will ([`spinning`]). It is **given up**: another serving process takes this
//! one's place, as in a reload that needs one, and this one ends without it.
//!
//! This is the serving process's main thread. It must never wait for a lane.

mod report;
mod spinning;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use turnpike_http::counters::AllCounters;
use turnpike_lane::event_loop::LaneGate;
use turnpike_lane::gate::{AcceptMode, AcceptMutex};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::steering::{Beat, LaneBoard};
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket_option;
use turnpike_protocols::Command;

use super::lane::Lane;
use spinning::Spinning;

/// Most looks in the time that a lane may be silent. A look comes when the first lane can have been
/// silent for so long, which is once in that time while all work; should it come sooner, a lane is
/// noticed at most a quarter late.
const LOOKS_PER_TIMEOUT: u32 = 4;
/// The time between two looks while every lane sleeps, has no connection, and had nothing to do for
/// as long: an idle machine should be left asleep.
const IDLE_LOOK: Duration = Duration::from_millis(250);
/// Silence that is written about, with what the lane was doing. Others accept sooner, since that
/// costs next to nothing; a lane that waits for a CPU may be silent for as long as they wait.
const LOGGED_AFTER: Duration = Duration::from_millis(200);

/// Silence of all lanes after which another one is started: long enough that whoever holds them up
/// for a moment, as a disk or a busy machine, has let one of them go.
const STANDBY_LANE_AFTER: Duration = Duration::from_secs(1);
/// A look that comes so much too late says that the machine stood still, and not the lanes.
const LATE_LOOK: Duration = Duration::from_millis(100);

/// What there is to look after.
pub(super) struct LaneView<'a> {
    pub(super) lanes: &'a [Lane],
    /// The gates of each lane, shared ones included.
    pub(super) gates: &'a [Vec<LaneGate>],
    pub(super) board: &'a LaneBoard,
    pub(super) mutex: &'a AcceptMutex,
    pub(super) counters: &'a AllCounters,
}

/// The watchdog of a process's lanes.
#[derive(Default)]
pub(super) struct Watchdog {
    timeout: Option<Duration>,
    log: Option<ErrorLog>,
    rescues: BTreeMap<usize, Rescue>,
    /// Lanes that sleep though connections wait: their last round, and since when it is seen.
    oversleeping: BTreeMap<usize, (u64, Instant)>,
    /// The lanes that were silent at the last look.
    silent: Vec<usize>,
    spinning: Spinning,
    /// A lane was given up at the last look.
    has_given_up: bool,
    /// Since when none works.
    outage: Option<Instant>,
    /// When the next look is due.
    due: Option<Instant>,
}

struct Rescue {
    since: Instant,
    /// When the lane's last round had begun: another one says that it works again.
    round_ns: u64,
    /// The lane that watches the silent one's gates, while one is told to.
    successor: Option<usize>,
    /// Connections that waited when it began.
    waited: u32,
    /// Whether the log knows.
    is_logged: bool,
}

/// A lane that has not come round in time.
struct Silent {
    lane: usize,
    silence: Duration,
}

impl Watchdog {
    /// Goes by another configuration from now on. Lanes that take it up watch their own gates only:
    /// those of silent ones are given out again.
    pub(super) fn begin(&mut self, timeout_ms: Option<u64>, log: &ErrorLog) {
        self.timeout = timeout_ms.map(Duration::from_millis);
        self.log = Some(log.clone());
        self.rescues
            .values_mut()
            .for_each(|rescue| rescue.successor = None);
        self.oversleeping.clear();
        self.due = None;
    }

    /// Looks once, and says when to look again.
    pub(super) fn look(&mut self, view: &LaneView<'_>) -> Option<Duration> {
        let timeout = self.timeout?;
        let silent = self.silent_lanes(view, timeout);
        self.end_rescues(view, &silent);
        self.give_up(view, &silent);
        for one in &silent {
            self.care_for(view, one, &silent);
            self.log_rescue(view, one, timeout);
        }
        let wait = self.until_next_look(view, timeout);
        self.note_outage(view, &silent, wait);
        Some(wait)
    }

    /// Since when none works, as far as this thread came to look in time meanwhile.
    fn note_outage(&mut self, view: &LaneView<'_>, silent: &[Silent], wait: Duration) {
        let now = Instant::now();
        let is_late = self.due.is_some_and(|due| now > due + LATE_LOOK);
        self.due = Some(now + wait);
        self.silent = silent.iter().map(|one| one.lane).collect();
        self.outage = if silent.len() == view.lanes.len() {
            self.outage.filter(|_| !is_late).or(Some(now))
        } else {
            None
        };
    }

    /// Gives up lanes that spin.
    fn give_up(&mut self, view: &LaneView<'_>, silent: &[Silent]) {
        for lane in self.spinning.look(view, silent) {
            self.has_given_up = true;
            let since = silent.iter().find(|one| one.lane == lane);
            let silence_ms = since.map_or(0, |one| one.silence.as_millis());
            self.note(
                Level::Alert,
                format_args!(
                    "lane {lane} has worked for {silence_ms} ms without an end: it is given up, \
                     and another worker process is requested"
                ),
            );
            self.report(lane, &view.lanes[lane], view.counters);
        }
    }

    /// Whether a lane was given up since the last call.
    pub(super) fn take_given_up(&mut self) -> bool {
        std::mem::take(&mut self.has_given_up)
    }

    /// Whether a lane is given up.
    pub(super) fn is_given_up(&self, lane: usize) -> bool {
        self.spinning.contains(lane)
    }

    /// Whether a lane was silent at the last look.
    pub(super) fn is_silent(&self, lane: usize) -> bool {
        self.silent.contains(&lane)
    }

    /// Whether no lane works though somebody may wait, and has not for long.
    pub(super) fn needs_standby_lane(&self, view: &LaneView<'_>) -> bool {
        let outage = self
            .outage
            .is_some_and(|since| since.elapsed() >= STANDBY_LANE_AFTER);
        outage && (0..view.lanes.len()).any(|lane| may_wait(view, lane))
    }

    /// Whether all lanes only wait for a CPU: the machine is too busy, and nothing hangs.
    pub(super) fn are_starved(&self, view: &LaneView<'_>) -> bool {
        let mut lanes = 0..view.lanes.len();
        lanes.all(|lane| self.spinning.is_starved(view, lane))
    }

    /// Has the log know that another lane was started since no other works.
    pub(super) fn standby_lane_started(&self, number: usize, are_starved: bool) {
        if are_starved {
            let message = format_args!(
                "the machine is too busy: no lane has got a CPU for a second; lane {number} \
                 accepts connections until another does"
            );
            self.note(Level::Warn, message);
        } else {
            let message =
                format_args!("no lane works; lane {number} accepts connections until another does");
            self.note(Level::Alert, message);
        }
    }

    /// Counts a lane that needs help, and has the log know what it does.
    pub(super) fn report(&self, number: usize, lane: &Lane, counters: &AllCounters) {
        count_rescue(number, counters);
        if let (Some(log), Some(facts)) = (&self.log, lane.facts()) {
            report::begin(number, facts, log);
        }
    }

    /// Where it writes.
    pub(super) fn log(&self) -> Option<&ErrorLog> {
        self.log.as_ref()
    }

    fn until_next_look(&self, view: &LaneView<'_>, timeout: Duration) -> Duration {
        let now_ns = monotonic_ns();
        let age = |since_ns| Duration::from_nanos(now_ns.saturating_sub(since_ns));
        let mut is_idle = self.rescues.is_empty();
        let mut wait = timeout;
        for lane in 0..view.lanes.len() {
            let is_asleep = view.board.beat(lane) == Beat::Asleep && view.board.load(lane) == 0;
            is_idle &= is_asleep && age(view.board.last_round_ns(lane)) >= IDLE_LOOK;
            let until_silent = match view.board.beat(lane) {
                Beat::Awake { since_ns } => Some(timeout.saturating_sub(age(since_ns))),
                // A lane that has slept for longer is checked in turn: it need not be awake.
                Beat::Asleep => timeout.checked_sub(age(view.board.last_round_ns(lane))),
                Beat::Gone => None,
            };
            wait = until_silent.map_or(wait, |until_silent| wait.min(until_silent));
        }
        if is_idle {
            timeout.max(IDLE_LOOK)
        } else {
            wait.max(timeout / LOOKS_PER_TIMEOUT)
        }
    }

    fn silent_lanes(&mut self, view: &LaneView<'_>, timeout: Duration) -> Vec<Silent> {
        let now_ns = monotonic_ns();
        let mut silent = Vec::new();
        for lane in 0..view.lanes.len() {
            let round_ns = view.board.last_round_ns(lane);
            let silence = Duration::from_nanos(now_ns.saturating_sub(round_ns));
            let is_silent = match self.rescues.get(&lane) {
                Some(rescue) if rescue.round_ns == round_ns => true,
                _ => match view.board.beat(lane) {
                    Beat::Gone => false,
                    // Whoever came round a moment ago works: the kernel need not be asked.
                    _ if silence < timeout => false,
                    Beat::Awake { .. } => true,
                    Beat::Asleep => self.oversleeps(view, lane, round_ns) >= timeout,
                },
            };
            if is_silent {
                silent.push(Silent { lane, silence });
            }
        }
        silent
    }

    /// For how long a lane has slept though connections wait: it was woken, and does not come.
    fn oversleeps(&mut self, view: &LaneView<'_>, lane: usize, round_ns: u64) -> Duration {
        if waiting(view, lane, AcceptMode::has_gate_per_lane) == 0 {
            self.oversleeping.remove(&lane);
            return Duration::ZERO;
        }
        let now = Instant::now();
        let (seen_ns, since) = self.oversleeping.entry(lane).or_insert((round_ns, now));
        if *seen_ns != round_ns {
            (*seen_ns, *since) = (round_ns, now);
        }
        since.elapsed()
    }

    /// Lanes that work again get their gates back.
    fn end_rescues(&mut self, view: &LaneView<'_>, silent: &[Silent]) {
        let back: Vec<usize> = self
            .rescues
            .keys()
            .copied()
            .filter(|lane| silent.iter().all(|one| one.lane != *lane))
            .collect();
        for lane in back {
            let Some(rescue) = self.rescues.remove(&lane) else {
                continue;
            };
            let Rescue {
                since, successor, ..
            } = rescue;
            if let Some(successor) = successor {
                self.assign_gates(view, successor);
            }
            if lane >= view.lanes.len() {
                continue;
            }
            let after_ms = since.elapsed().as_millis();
            let level = if rescue.is_logged {
                Level::Notice
            } else {
                Level::Info
            };
            self.note(
                level,
                format_args!("lane {lane} works again, {after_ms} ms after it was rescued"),
            );
        }
    }

    fn care_for(&mut self, view: &LaneView<'_>, one: &Silent, silent: &[Silent]) {
        let lane = one.lane;
        // Others cannot accept while it holds the mutex; it takes no notice when it comes back.
        let held = view.mutex.release(lane);
        let is_silent = |lane: usize| silent.iter().any(|one| one.lane == lane);
        let before = self.rescues.get(&lane).map(|rescue| rescue.successor);
        if before
            .flatten()
            .is_some_and(|successor| !is_silent(successor))
        {
            return;
        }
        // Of shared gates too: it may have been the one that was told of them.
        let waiting = waiting(view, lane, |mode| mode != AcceptMode::Mutex);
        if before.is_none() && waiting == 0 && !held {
            return;
        }
        let successor = (0..view.lanes.len())
            .filter(|other| !is_silent(*other))
            .min_by_key(|other| view.board.load(*other));
        // When all are silent, mostly the machine is, and one of them will be the first to work
        // again. See `needs_standby_lane`.
        let Some(successor) = successor else {
            return;
        };
        let rescue = self.rescues.entry(lane).or_insert_with(|| Rescue {
            since: Instant::now(),
            round_ns: view.board.last_round_ns(lane),
            successor: None,
            waited: waiting,
            is_logged: false,
        });
        rescue.successor = Some(successor);
        if view.board.beat(lane) == Beat::Asleep {
            // It does not even wake up, which steering cannot know.
            view.board.mark_gone(lane);
        }
        self.assign_gates(view, successor);
        if before.is_none() {
            count_rescue(lane, view.counters);
        }
    }

    /// Has the log know of a rescue that lasts.
    fn log_rescue(&mut self, view: &LaneView<'_>, one: &Silent, timeout: Duration) {
        let lane = one.lane;
        let is_long = one.silence >= timeout.max(LOGGED_AFTER);
        let rescue = self.rescues.get_mut(&lane);
        let Some(rescue) = rescue.filter(|rescue| is_long && !rescue.is_logged) else {
            return;
        };
        let Some(successor) = rescue.successor else {
            return;
        };
        rescue.is_logged = true;
        let (waited, silence_ms) = (rescue.waited, one.silence.as_millis());
        self.note(
            Level::Warn,
            format_args!(
                "lane {lane} has been silent for {silence_ms} ms while {waited} connections \
                 waited for it; lane {successor} accepts them"
            ),
        );
        if let (Some(log), Some(facts)) = (&self.log, view.lanes[lane].facts()) {
            report::begin(lane, facts, log);
        }
    }

    /// Tells a lane all gates that it is to watch beside its own.
    fn assign_gates(&self, view: &LaneView<'_>, successor: usize) {
        let mine = self
            .rescues
            .iter()
            .filter(|(_, rescue)| rescue.successor == Some(successor));
        let gates = mine
            .filter_map(|(lane, _)| view.gates.get(*lane))
            .flatten()
            .filter(|gate| gate.mode.has_gate_per_lane())
            .cloned()
            .collect();
        if let Some(successor) = view.lanes.get(successor) {
            successor.send(Command::AdoptGates(gates));
        }
    }

    fn note(&self, level: Level, message: std::fmt::Arguments<'_>) {
        if let Some(log) = &self.log {
            log.event(level, message);
        }
    }
}

fn count_rescue(lane: usize, counters: &AllCounters) {
    let lanes = counters.numbered();
    if let Some((_, counters)) = lanes.iter().rfind(|(number, _)| *number == lane) {
        counters.rescues.add();
    }
}

/// Whether connections wait at a lane's gates, or one of them does not tell.
fn may_wait(view: &LaneView<'_>, lane: usize) -> bool {
    let mut gates = view.gates.get(lane).into_iter().flatten();
    gates.any(|gate| {
        let info = socket_option::tcp_info(gate.socket.as_fd());
        info.map_or(true, |info| info.accept_queue > 0)
    })
}

/// Connections that wait at those of a lane's gates whose modes count.
fn waiting(view: &LaneView<'_>, lane: usize, counts: impl Fn(AcceptMode) -> bool) -> u32 {
    let gates = view.gates.get(lane).map_or(&[][..], Vec::as_slice);
    let waiting = gates
        .iter()
        .filter(|gate| counts(gate.mode))
        // A unix socket does not tell; it is shared, and other lanes come to it.
        .filter_map(|gate| socket_option::tcp_info(gate.socket.as_fd()).ok())
        .map(|info| info.accept_queue);
    waiting.sum()
}
