//! The loop of one thread: what to start and when, over all connections.
//!
//! The loop is written once for every pacing, transport and protocol. It waits in one place, and
//! every start goes through one function; what happens inside a connection is `connection`'s
//! matter.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nix::sys::epoll::EpollEvent;

use crate::connection::{Slot, State, Step};
use crate::histogram::Histogram;
use crate::plan::{Pacing, Plan};
use crate::schedule::Schedule;
use crate::sys;
use crate::tally::{ErrorKind, Errors, Failure, Tally};
use crate::thread::{Clock, Thread};

/// Events taken from one wait: enough that the wait is shared by many answers, few enough that
/// the table stays in the first-level cache.
const EVENTS_MAX: usize = 256;
/// Starts before events have their turn again: twice the events, so that opening many connections
/// is not held up by those that are open.
const STARTS_MAX: usize = 512;
/// Time for these starts, so that they do not spoil the answers' times either: connect(2) takes
/// milliseconds when most source ports are in TIME_WAIT.
const STARTS_NS_MAX: u64 = 5_000_000;
/// Time between looks at time-outs and the published figures.
const TICK_NS_MAX: u64 = 100_000_000;
/// The same with short time-outs.
const TICK_NS_MIN: u64 = 1_000_000;
/// wrk samples its requests per second this often.
const RATE_SAMPLE_NS: u64 = 100_000_000;
/// First pause after a failed connection attempt; doubled from try to try.
const BACKOFF_NS_FIRST: u64 = 1_000_000;
/// How long an answer is awaited awake: about what a sleep and its end cost two processors.
const AWAKE_NS_MAX: u64 = 5_000;
/// While awaiting awake does not pay it is tried again once in so many waits.
const ALERT_EVERY: u32 = 64;
/// Bound of the score, so that a change of the traffic is noticed after a few waits.
const ALERT_SCORE_MAX: i32 = 8;
/// Doublings of the pause: up to 128 ms.
const BACKOFF_DOUBLINGS_MAX: u8 = 7;

/// The signals of the main thread to all others.
#[derive(Debug, Default)]
pub(crate) struct Control(AtomicU8);

impl Control {
    /// Ends the run at once; requests under way are abandoned.
    pub(crate) fn abandon(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// Figures published while the run goes on.
#[derive(Default, Clone)]
pub(crate) struct Progress {
    pub(crate) issued: u64,
    pub(crate) completed: u64,
    pub(crate) bytes: u64,
    pub(crate) open: u64,
    /// Connections established so far.
    pub(crate) connections: u64,
    pub(crate) errors: Errors,
    /// Of a run that is watched live; as `statuses`.
    pub(crate) latency: Option<Histogram>,
    pub(crate) statuses: Vec<u64>,
}

/// Learns whether answers come soon enough to be awaited awake.
#[derive(Debug, Default)]
struct Alertness {
    /// Recent hits less misses.
    score: i32,
    /// Waits since the last try.
    waits: u32,
}

impl Alertness {
    fn tries(&mut self) -> bool {
        self.waits += 1;
        self.score > 0 || self.waits >= ALERT_EVERY
    }

    fn note(&mut self, hit: bool) {
        self.waits = 0;
        let change = if hit { 1 } else { -2 };
        self.score = (self.score + change).clamp(-ALERT_SCORE_MAX, ALERT_SCORE_MAX);
    }
}

/// One thread's loop.
pub(crate) struct Worker<'p> {
    thread: Thread<'p>,
    slots: Vec<Slot>,
    /// Slots without a request, each with the time since when; open loop only.
    idle: VecDeque<(u32, u64)>,
    /// Slots in use on which a request of the schedule can join others, each with the time since
    /// when: HTTP/2 with several streams, in an open loop.
    joinable: VecDeque<(u32, u64)>,
    /// Slots that may start later: ramp-up, think time, pauses after failures.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Slots whose answer came with the events at hand and which go on after all of these.
    ready: Vec<u32>,
    alertness: Alertness,
    schedule: Option<Schedule>,
    /// Slots with a request under way.
    busy: usize,
    tick_ns: u64,
    next_tick_ns: u64,
    sample_from_ns: u64,
    sample_completed: u64,
}

impl<'p> Worker<'p> {
    /// The loop of thread `index`; to be made in the thread itself.
    ///
    /// # Errors
    /// When there can be no epoll set.
    pub(crate) fn new(plan: &'p Plan, index: usize) -> nix::Result<Worker<'p>> {
        let mut thread = Thread::new(plan, index)?;
        let share = |total: u64| {
            let threads = plan.threads as u64;
            total / threads + u64::from((index as u64) < total % threads)
        };
        let count = usize::try_from(share(plan.connections as u64)).unwrap_or(0);
        let end_ns = plan.duration.map_or(u64::MAX / 2, |duration| {
            u64::try_from((duration + plan.warmup).as_nanos()).unwrap_or(u64::MAX / 2)
        });
        thread.quota = plan.requests.map_or(u64::MAX, share);
        thread.end_ns = end_ns;
        let schedule = match plan.pacing {
            Pacing::Closed => None,
            Pacing::Requests(arrival, per_s) | Pacing::Connections(arrival, per_s) => {
                Some(Schedule::new(arrival, per_s, index, plan.threads, end_ns))
            }
        };
        let due = (0..count).map(|slot| {
            let order = (slot * plan.threads + index) as f64;
            let start_ns = plan
                .start_rate
                .map_or(0, |per_s| (order / per_s * 1e9) as u64);
            Reverse((start_ns, u32::try_from(slot).unwrap_or(u32::MAX)))
        });
        Ok(Worker {
            slots: std::iter::repeat_with(Slot::default).take(count).collect(),
            idle: VecDeque::with_capacity(count),
            joinable: VecDeque::new(),
            due: due.collect(),
            ready: Vec::with_capacity(EVENTS_MAX),
            alertness: Alertness::default(),
            schedule,
            busy: 0,
            tick_ns: (thread.timeout_ns / 16).clamp(TICK_NS_MIN, TICK_NS_MAX),
            next_tick_ns: 0,
            sample_from_ns: thread.measure_from_ns,
            sample_completed: 0,
            thread,
        })
    }

    /// Runs until the plan is done or broken off, and returns the figures.
    ///
    /// All threads are given the same `clock`, which begins with the run.
    pub(crate) fn run(
        mut self,
        clock: Clock,
        control: &Control,
        progress: &Mutex<Progress>,
    ) -> Tally {
        self.thread.clock = clock;
        let mut events = vec![EpollEvent::empty(); EVENTS_MAX];
        loop {
            let now_ns = self.thread.clock.now_ns();
            if now_ns >= self.next_tick_ns {
                self.tick(now_ns, progress);
            }
            self.run_timers(now_ns);
            self.start_due(now_ns);
            if control.is_abandoned() || self.is_over(now_ns) {
                break;
            }
            let count = self.wait(&mut events, now_ns);
            for event in events.iter().take(count) {
                self.dispatch(*event);
            }
            self.start_ready();
        }
        self.finish(progress)
    }

    /// Waits for events; how many of `events` were filled.
    ///
    /// Going to sleep and being woken costs more than an answer that comes at once is worth, so
    /// where answers do come at once they are waited for awake, for a moment.
    fn wait(&mut self, events: &mut [EpollEvent], now_ns: u64) -> usize {
        let wait_ns = self.wait_ns(now_ns);
        let mut count = 0;
        if self.busy > 0 && self.alertness.tries() {
            let end_ns = now_ns + wait_ns.min(AWAKE_NS_MAX);
            let mut awake_ns = now_ns;
            while count == 0 && awake_ns < end_ns {
                count = sys::wait(&self.thread.epoll, events, Some(Duration::ZERO)).unwrap_or(0);
                awake_ns = self.thread.clock.now_ns();
            }
            self.alertness.note(count > 0);
            self.thread.tally.awake_ns += awake_ns - now_ns;
        }
        if count == 0 {
            let wait = Duration::from_nanos(wait_ns);
            count = sys::wait(&self.thread.epoll, events, Some(wait)).unwrap_or(0);
        }
        count
    }

    fn dispatch(&mut self, event: EpollEvent) {
        let token = event.data();
        let index = (token & u64::from(u32::MAX)) as u32;
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        if u64::from(slot.generation) != token >> 32 {
            return;
        }
        self.thread.current = index;
        let step = slot.advance(&mut self.thread, event.events());
        self.follow(index, step);
        self.offer(index);
    }

    /// Has connections of HTTP/3 do what is due.
    fn run_timers(&mut self, now_ns: u64) {
        while let Some(Reverse((due_ns, index))) = self.thread.timers.peek().copied()
            && due_ns <= now_ns
        {
            self.thread.timers.pop();
            let slot = self.slots.get_mut(index as usize);
            let Some(slot) = slot.filter(|slot| slot.has_timer(due_ns)) else {
                continue;
            };
            self.thread.current = index;
            let step = slot.timer_is_due(&mut self.thread);
            self.follow(index, step);
            self.offer(index);
        }
    }

    /// Lists a slot in use on which another request of the schedule can start.
    fn offer(&mut self, index: u32) {
        if !self.thread.plan.joins() {
            return;
        }
        let streams = self.thread.plan.pipeline;
        let slot = self.slots.get_mut(index as usize);
        if let Some(slot) = slot.filter(|slot| !slot.is_offered && slot.has_room(streams)) {
            slot.is_offered = true;
            let now_ns = self.thread.clock.now_ns();
            self.joinable.push_back((index, now_ns));
        }
    }

    /// The first slot of the list that still has room.
    fn first_joinable(&mut self) -> Option<(u32, u64)> {
        let streams = self.thread.plan.pipeline;
        while let Some(first) = self.joinable.front().copied() {
            let slot = self.slots.get_mut(first.0 as usize)?;
            if slot.has_room(streams) {
                return Some(first);
            }
            slot.is_offered = false;
            self.joinable.pop_front();
        }
        None
    }

    /// Goes on from what became of a step.
    fn follow(&mut self, index: u32, step: Step) {
        match step {
            Step::Wait | Step::LostBetween => {}
            Step::Answered | Step::Finished => {
                self.busy -= 1;
                self.next(index);
            }
            Step::Failed(kind) => {
                self.busy -= 1;
                self.failed(index, kind);
            }
        }
    }

    fn failed(&mut self, index: u32, kind: ErrorKind) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        if slot.intended_ns >= self.thread.measure_from_ns {
            let now_ns = self.thread.clock.now_ns();
            let at_ns = now_ns.saturating_sub(self.thread.measure_from_ns);
            self.thread.tally.series.failed(at_ns);
            self.thread.tally.fail(Failure {
                kind,
                begun_ns: slot.intended_ns,
                ended_ns: now_ns,
            });
        }
        self.thread.tally.failed += u64::from(slot.pending);
        slot.pending = 0;
        let mut pause_ns = 0;
        if kind.is_connecting() {
            pause_ns = BACKOFF_NS_FIRST << slot.failures.min(BACKOFF_DOUBLINGS_MAX);
            slot.failures = slot.failures.saturating_add(1);
        }
        self.due
            .push(Reverse((self.thread.clock.now_ns() + pause_ns, index)));
    }

    /// The slot has nothing to do: gives it its next request, now or later.
    fn next(&mut self, index: u32) {
        let Some(slot) = self.slots.get(index as usize) else {
            return;
        };
        let target = self.thread.plan.targets.targets.get(slot.target as usize);
        let think_ns = target.map_or(0, |target| target.think_ns);
        let continues = match self.thread.plan.pacing {
            Pacing::Closed => true,
            Pacing::Connections(..) => slot.state == State::Kept,
            Pacing::Requests(..) => false,
        };
        if think_ns > 0 {
            let due_ns = self.thread.clock.now_ns() + think_ns;
            self.due.push(Reverse((due_ns, index)));
        } else if continues {
            self.ready.push(index);
        } else {
            let now_ns = self.thread.clock.now_ns();
            match self.arrival(now_ns) {
                Some(intended_ns) => self.start(index, intended_ns, now_ns),
                None => self.idle.push_back((index, now_ns)),
            }
        }
    }

    /// Starts the next requests of the slots that were answered. Sending only after all of a
    /// batch is received wakes the server once for the batch, not once for each request.
    fn start_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        for index in ready.drain(..) {
            let now_ns = self.thread.clock.now_ns();
            self.start(index, now_ns, now_ns);
        }
        self.ready = ready;
    }

    fn arrival(&mut self, now_ns: u64) -> Option<u64> {
        if self.thread.quota == 0 {
            return None;
        }
        self.schedule
            .as_mut()?
            .take_due(now_ns, &mut self.thread.random)
    }

    /// Starts what has become due: waiting slots, then arrivals for idle slots.
    fn start_due(&mut self, now_ns: u64) {
        let mut starts = 0;
        while starts < STARTS_MAX
            && let Some(Reverse((_, index))) = self
                .due
                .peek()
                .copied()
                .filter(|Reverse((due_ns, _))| *due_ns <= now_ns)
        {
            self.due.pop();
            starts += self.weigh(now_ns);
            let kept = self
                .slots
                .get(index as usize)
                .is_some_and(|slot| slot.state == State::Kept);
            match self.thread.plan.pacing {
                Pacing::Closed => self.start(index, now_ns, now_ns),
                Pacing::Connections(..) if kept => self.start(index, now_ns, now_ns),
                Pacing::Requests(..) | Pacing::Connections(..) => {
                    self.idle.push_back((index, now_ns));
                }
            }
        }
        while starts < STARTS_MAX
            && let Some((index, since_ns)) = self.idle.front().copied()
            && let Some(intended_ns) = self.arrival(now_ns)
        {
            self.idle.pop_front();
            starts += self.weigh(now_ns);
            if intended_ns >= self.thread.measure_from_ns {
                // Before it was free no start was possible.
                let late_ns = now_ns.saturating_sub(intended_ns.max(since_ns));
                self.thread.tally.lag.record(late_ns);
            }
            self.start(index, intended_ns, now_ns);
        }
        while starts < STARTS_MAX
            && let Some((index, since_ns)) = self.first_joinable()
            && let Some(intended_ns) = self.arrival(now_ns)
        {
            starts += self.weigh(now_ns);
            if intended_ns >= self.thread.measure_from_ns {
                let late_ns = now_ns.saturating_sub(intended_ns.max(since_ns));
                self.thread.tally.lag.record(late_ns);
            }
            self.join(index, intended_ns, now_ns);
        }
    }

    /// Starts a request on the first slot of the list of those in use.
    fn join(&mut self, index: u32, intended_ns: u64, now_ns: u64) {
        self.joinable.pop_front();
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return;
        };
        slot.is_offered = false;
        self.thread.quota -= 1;
        self.thread.tally.issued += 1;
        self.thread.current = index;
        let step = slot.join(&mut self.thread, intended_ns, now_ns);
        self.follow(index, step);
        self.offer(index);
    }

    /// How much of [`STARTS_MAX`] one more start takes: all when the turn, begun at `now_ns`, has
    /// had its time.
    fn weigh(&self, now_ns: u64) -> usize {
        let over = self.thread.clock.now_ns() - now_ns > STARTS_NS_MAX;
        if over { STARTS_MAX } else { 1 }
    }

    /// Starts a request, on the slot's connection or on a new one. The only place that does.
    fn start(&mut self, index: u32, intended_ns: u64, now_ns: u64) {
        let over = self.thread.quota == 0 || intended_ns >= self.thread.end_ns;
        let Some(slot) = self.slots.get_mut(index as usize).filter(|_| !over) else {
            return;
        };
        let plan = self.thread.plan;
        let targets = &plan.targets;
        let kept = slot.state == State::Kept;
        let target = if targets.in_order {
            slot.in_order(targets.targets.len())
        } else if kept {
            targets.draw_at(slot.endpoint(), &mut self.thread.random)
        } else {
            targets.draw(&mut self.thread.random)
        };
        let endpoint = targets
            .targets
            .get(target)
            .map_or(0, |target| target.endpoint);
        let reuse = slot.is_open_to(endpoint);
        if !reuse {
            slot.left = plan.connreqs.draw(&mut self.thread.random);
        }
        let pipeline = u32::try_from(plan.pipeline).unwrap_or(1);
        let quota = u32::try_from(self.thread.quota).unwrap_or(u32::MAX);
        let batch = match plan.pacing {
            // Each has a time of its own: a rate is a rate.
            Pacing::Requests(..) => 1,
            Pacing::Closed | Pacing::Connections(..) => pipeline.min(slot.left).min(quota).max(1),
        };
        if slot.left != u32::MAX {
            slot.left -= batch.min(slot.left);
        }
        slot.target = u32::try_from(target).unwrap_or(0);
        slot.pending = u16::try_from(batch).unwrap_or(u16::MAX);
        slot.intended_ns = intended_ns;
        self.thread.quota -= u64::from(batch);
        self.thread.tally.issued += u64::from(batch);
        self.busy += 1;
        self.thread.current = index;
        let step = if reuse {
            slot.request(&mut self.thread, now_ns)
        } else {
            slot.open(&mut self.thread, now_ns)
        };
        self.follow(index, step);
        self.offer(index);
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let waiting = self
            .schedule
            .as_ref()
            .is_some_and(|schedule| schedule.peek_ns().is_some());
        let done = match self.schedule {
            Some(_) => self.thread.quota == 0 || (now_ns >= self.thread.end_ns && !waiting),
            None => self.thread.quota == 0 || now_ns >= self.thread.end_ns,
        };
        (done && self.busy == 0) || now_ns >= self.hard_end_ns()
    }

    /// When the last request that could start in time has had its time.
    fn hard_end_ns(&self) -> u64 {
        self.thread.end_ns.saturating_add(self.thread.timeout_ns)
    }

    /// Time to wait for events before something else must be done.
    fn wait_ns(&self, now_ns: u64) -> u64 {
        let mut wake_ns = self.next_tick_ns.min(self.hard_end_ns());
        if let Some(Reverse((due_ns, _))) = self.thread.timers.peek() {
            wake_ns = wake_ns.min(*due_ns);
        }
        if now_ns < self.thread.end_ns {
            wake_ns = wake_ns.min(self.thread.end_ns);
        }
        if let Some(Reverse((due_ns, _))) = self.due.peek() {
            wake_ns = wake_ns.min(*due_ns);
        }
        if !(self.idle.is_empty() && self.joinable.is_empty())
            && self.thread.quota > 0
            && let Some(next_ns) = self.schedule.as_ref().and_then(Schedule::peek_ns)
        {
            wake_ns = wake_ns.min(next_ns);
        }
        wake_ns.saturating_sub(now_ns)
    }

    /// Looks at time-outs, samples the rate, publishes the figures.
    fn tick(&mut self, now_ns: u64, progress: &Mutex<Progress>) {
        self.next_tick_ns = now_ns + self.tick_ns;
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get_mut(index) else {
                break;
            };
            if slot.deadline_ns <= now_ns && slot.is_busy() {
                let step = slot.time_out();
                self.follow(u32::try_from(index).unwrap_or(u32::MAX), step);
            }
        }
        let elapsed_ns = now_ns.saturating_sub(self.sample_from_ns);
        let tally = &mut self.thread.tally;
        if elapsed_ns >= RATE_SAMPLE_NS && now_ns >= self.thread.measure_from_ns {
            let count = tally.completed - self.sample_completed;
            if count > 0 {
                tally
                    .rates
                    .record((count as f64 * 1e9 / elapsed_ns as f64) as u64);
            }
            self.sample_completed = tally.completed;
            self.sample_from_ns = now_ns;
        }
        self.publish(progress);
    }

    fn publish(&self, progress: &Mutex<Progress>) {
        let tally = &self.thread.tally;
        let open = self
            .slots
            .iter()
            .filter(|slot| slot.state != State::Free)
            .count() as u64;
        // A reader that died leaves the figures as good as they were.
        let mut shared = progress
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        shared.issued = tally.issued;
        shared.completed = tally.completed;
        shared.bytes = tally.bytes;
        shared.connections = tally.connections;
        shared.errors = tally.errors;
        shared.open = open;
        if self.thread.plan.live {
            shared.latency = Some(tally.latency.clone());
            shared.statuses.clone_from(&tally.statuses);
        }
    }

    fn finish(mut self, progress: &Mutex<Progress>) -> Tally {
        let now_ns = self.thread.clock.now_ns();
        let timed_out = now_ns >= self.hard_end_ns();
        for slot in self.slots.iter_mut().filter(|slot| slot.is_busy()) {
            let tally = &mut self.thread.tally;
            // A request that was sent late in an open loop may still have time.
            if timed_out && slot.deadline_ns <= now_ns {
                tally.failed += u64::from(slot.pending);
                tally.fail(Failure {
                    kind: ErrorKind::Timeout,
                    begun_ns: slot.intended_ns,
                    ended_ns: now_ns,
                });
            } else {
                tally.abandoned += u64::from(slot.pending);
            }
        }
        if self.thread.quota > 0 && timed_out {
            self.thread.tally.unsent = self.schedule.as_ref().map_or(0, Schedule::left);
        }
        self.publish(progress);
        self.slots.iter_mut().for_each(Slot::close);
        self.thread.tally
    }
}
