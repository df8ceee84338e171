//! Looks after lanes that have gone silent: a handler that loops, a disk that does not answer, a
//! thread that somebody has stopped.
//!
//! Every lane tells on the board when it begins a round and when it sleeps. One whose round takes
//! too long while connections wait at its gates is **rescued**: a lane that works watches these
//! gates too, which needs no help of the kernel, since all lanes are threads of one process. It
//! goes on until the silent lane comes round. What that one has accepted already stays with it:
//! requests on its open connections wait until it works again, or for ever.
//!
//! This is the serving process's main thread. It must never wait for a lane.

mod report;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use turnpike_http::connection::Command;
use turnpike_http::counters::AllCounters;
use turnpike_lane::gate::{AcceptMode, AcceptMutex};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::lot::LotGate;
use turnpike_lane::steering::{Beat, LaneBoard};
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket_option;

use super::lanes::Lane;

/// Looks in the time that a lane may be silent: it is noticed at most a quarter late.
const LOOKS_PER_TIMEOUT: u32 = 4;
/// Between two looks while every lane sleeps and has no connection: an idle machine shall sleep.
const IDLE_LOOK: Duration = Duration::from_millis(250);

/// What there is to look after.
pub(super) struct Ward<'a> {
    pub(super) lanes: &'a [Lane],
    /// The gates of each lane, shared ones included.
    pub(super) gates: &'a [Vec<LotGate>],
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
}

struct Rescue {
    since: Instant,
    /// When the lane's last round had begun: another one says that it works again.
    round_ns: u64,
    /// The lane that watches the silent one's gates, while one is told to.
    heir: Option<usize>,
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
            .for_each(|rescue| rescue.heir = None);
        self.oversleeping.clear();
    }

    /// Looks once, and says when to look again.
    pub(super) fn look(&mut self, ward: &Ward<'_>) -> Option<Duration> {
        let timeout = self.timeout?;
        let silent = self.silent_lanes(ward, timeout);
        self.end_rescues(ward, &silent);
        for one in &silent {
            self.care_for(ward, one, &silent);
        }
        let idle = (0..ward.lanes.len())
            .all(|lane| ward.board.beat(lane) == Beat::Asleep && ward.board.load(lane) == 0);
        let wait = timeout / LOOKS_PER_TIMEOUT;
        Some(if idle { wait.max(IDLE_LOOK) } else { wait })
    }

    fn silent_lanes(&mut self, ward: &Ward<'_>, timeout: Duration) -> Vec<Silent> {
        let now_ns = monotonic_ns();
        let mut silent = Vec::new();
        for lane in 0..ward.lanes.len() {
            let round_ns = ward.board.last_round_ns(lane);
            let silence = Duration::from_nanos(now_ns.saturating_sub(round_ns));
            let is_silent = match self.rescues.get(&lane) {
                Some(rescue) if rescue.round_ns == round_ns => true,
                _ => match ward.board.beat(lane) {
                    Beat::Gone => false,
                    Beat::Awake { .. } => silence >= timeout,
                    Beat::Asleep => self.oversleeps(ward, lane, round_ns) >= timeout,
                },
            };
            if is_silent {
                silent.push(Silent { lane, silence });
            }
        }
        silent
    }

    /// For how long a lane has slept though connections wait: it was woken, and does not come.
    fn oversleeps(&mut self, ward: &Ward<'_>, lane: usize, round_ns: u64) -> Duration {
        if waiting(ward, lane, AcceptMode::has_gate_per_lane) == 0 {
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
    fn end_rescues(&mut self, ward: &Ward<'_>, silent: &[Silent]) {
        let back: Vec<usize> = self
            .rescues
            .keys()
            .copied()
            .filter(|lane| silent.iter().all(|one| one.lane != *lane))
            .collect();
        for lane in back {
            let Some(Rescue { since, heir, .. }) = self.rescues.remove(&lane) else {
                continue;
            };
            if let Some(heir) = heir {
                self.tell_heir(ward, heir);
            }
            if lane >= ward.lanes.len() {
                continue;
            }
            let after_ms = since.elapsed().as_millis();
            self.note(
                Level::Notice,
                format_args!("lane {lane} works again, {after_ms} ms after it was rescued"),
            );
        }
    }

    fn care_for(&mut self, ward: &Ward<'_>, one: &Silent, silent: &[Silent]) {
        let lane = one.lane;
        // Others cannot accept while it holds the mutex; it takes no notice when it comes back.
        let held = ward.mutex.release(lane);
        let is_silent = |lane: usize| silent.iter().any(|one| one.lane == lane);
        let before = self.rescues.get(&lane).map(|rescue| rescue.heir);
        if before.flatten().is_some_and(|heir| !is_silent(heir)) {
            return;
        }
        // Of shared gates too: it may have been the one that was told of them.
        let waiting = waiting(ward, lane, |mode| mode != AcceptMode::Mutex);
        if before.is_none() && waiting == 0 && !held {
            return;
        }
        let heir = (0..ward.lanes.len())
            .filter(|other| !is_silent(*other))
            .min_by_key(|other| ward.board.load(*other));
        // When all are silent the machine is: one of them will be the first to work again.
        let Some(heir) = heir else {
            return;
        };
        let rescue = self.rescues.entry(lane).or_insert_with(|| Rescue {
            since: Instant::now(),
            round_ns: ward.board.last_round_ns(lane),
            heir: None,
        });
        rescue.heir = Some(heir);
        if ward.board.beat(lane) == Beat::Asleep {
            // It does not even wake up, which steering cannot know.
            ward.board.mark_gone(lane);
        }
        self.tell_heir(ward, heir);
        if before.is_some() {
            return;
        }
        let counters = ward.counters.numbered();
        if let Some((_, counters)) = counters.iter().rfind(|(number, _)| *number == lane) {
            counters.rescues.add();
        }
        let silence_ms = one.silence.as_millis();
        self.note(
            Level::Warn,
            format_args!(
                "lane {lane} has been silent for {silence_ms} ms while {waiting} connections \
                 wait for it; lane {heir} accepts them"
            ),
        );
        if let (Some(log), Some(facts)) = (&self.log, ward.lanes[lane].facts()) {
            report::begin(lane, facts, log);
        }
    }

    /// Tells a lane all gates that it is to watch beside its own.
    fn tell_heir(&self, ward: &Ward<'_>, heir: usize) {
        let mine = self
            .rescues
            .iter()
            .filter(|(_, rescue)| rescue.heir == Some(heir));
        let gates = mine
            .filter_map(|(lane, _)| ward.gates.get(*lane))
            .flatten()
            .filter(|gate| gate.mode.has_gate_per_lane())
            .cloned()
            .collect();
        if let Some(heir) = ward.lanes.get(heir) {
            heir.send(Command::Foster(gates));
        }
    }

    fn note(&self, level: Level, message: std::fmt::Arguments<'_>) {
        if let Some(log) = &self.log {
            log.event(level, message);
        }
    }
}

/// Connections that wait at those of a lane's gates whose modes count.
fn waiting(ward: &Ward<'_>, lane: usize, counts: impl Fn(AcceptMode) -> bool) -> u32 {
    let gates = ward.gates.get(lane).map_or(&[][..], Vec::as_slice);
    let waiting = gates
        .iter()
        .filter(|gate| counts(gate.mode))
        // A unix socket does not tell; it is shared, and other lanes come to it.
        .filter_map(|gate| socket_option::tcp_info(gate.socket.as_fd()).ok())
        .map(|info| info.accept_queue);
    waiting.sum()
}
