//! The service of a serving process: one plan, many lanes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnpike_http::counters::{AllCounters, CloseReason, HttpCounters};
use turnpike_lane::affinity::CpuSet;
use turnpike_lane::event_loop::{AcceptSettings, LaneGate, Pulse};
use turnpike_lane::gate::{AcceptMode, AcceptMutex};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::steering::LaneBoard;
use turnpike_lane::sys::mapping::SharedWords;
use turnpike_lane::sys::socket::Kind;
use turnpike_plan::background::{self, Background};
use turnpike_plan::environment::KEPT_WORDS;
use turnpike_plan::held::HeldValues;
use turnpike_protocols::{Apply, Command, Leave, Plans, Process};

use super::changes::Shape;
use super::environment::{BuildContext, Zones};
use super::express::ExpressLane;
use super::held_gates::{HeldGates, ListeningSockets, SteeringLevels};
use super::lane::{Lane, Start};
use super::plans;
use super::rates::Rates;
use super::succession::Adopters;
use super::watchdog::{LaneView, Watchdog};
use crate::channel::{
    BOARD_NAME, CHECK_GATES_FROM, Extra, HELD_NAME, KEPT_NAME, MasterCounts, SuccessionLinks,
};
use crate::configuration::Configuration;
use crate::control::Request;
use crate::service::{Generation, Holdings, Reporter, Service};

/// How long lanes may take to take a plan up. One that takes longer is stuck in a request; it
/// takes the plan up when it comes back, and nothing waits for it until then.
const APPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two looks at silent lanes meanwhile.
const APPLY_LOOK: Duration = Duration::from_millis(50);

/// Between two looks whether sockets of removed addresses are used: others wait for the address.
const CLOSING_LOOK: Duration = Duration::from_secs(1);

/// The service of a serving process: its lanes and what they share.
pub(super) struct LaneService {
    pub(super) reporter: Reporter,
    /// What lanes share.
    pub(super) process: Arc<Process>,
    pub(super) counters: Arc<AllCounters>,
    pub(super) running: Arc<AtomicUsize>,
    pub(super) lanes: Vec<Lane>,
    /// Lanes that a configuration had no place for, and that are not at their end yet.
    pub(super) leaving: Vec<Lane>,
    /// A lane more, while none of the others works.
    pub(super) standby_lane: Option<Lane>,
    /// What it was made of, for the next reload's report.
    shape: Shape,
    /// What is in force.
    pub(super) plan: Option<Plans>,
    /// What runs beside the lanes.
    background: Arc<Background>,
    /// The listening sockets: the listen, the lane, the socket.
    pub(super) listening_sockets: ListeningSockets,
    /// How the kernel chooses among those of a listen, where it is told how.
    pub(super) steering_levels: SteeringLevels,
    /// A process before reads the datagrams of every address.
    pub(super) are_datagrams_held: bool,
    /// The lanes that take what a process before gives away.
    pub(super) adopters: Arc<Adopters>,
    /// The link to the process before, until this one serves.
    pub(super) predecessor: Option<OwnedFd>,
    /// The link to the process that is to follow.
    pub(super) successor: Option<OwnedFd>,
    zones: Zones,
    /// Memory that outlives this process.
    kept: Option<Arc<SharedWords>>,
    /// What commands have changed, in memory that outlives this process.
    held: Option<Arc<HeldValues>>,
    express: ExpressLane,
    /// Listening sockets by their own numbers, so that one that stays is not watched anew.
    gates: HeldGates,
    mutex: Arc<AcceptMutex>,
    /// Where lanes tell how they are: the watchdog, and the steering program once an address is
    /// steered.
    pub(super) board: Option<Arc<LaneBoard>>,
    /// The board that the steering program reads, once it is ours too.
    steering: Option<OwnedFd>,
    pub(super) watchdog: Watchdog,
    pub(super) rates: Rates,
    /// Requests by which the server asked itself.
    pub(super) self_checks: Arc<AtomicU64>,
    /// The gates of each lane under the plan in force.
    pub(super) lane_gates: Vec<Vec<LaneGate>>,
}

impl LaneService {
    pub(super) fn new(reporter: Reporter) -> Self {
        turnpike_plan::time::prepare();
        let process = Arc::<Process>::default();
        Self {
            reporter,
            counters: Arc::clone(&process.http),
            process,
            running: Arc::default(),
            lanes: Vec::new(),
            leaving: Vec::new(),
            standby_lane: None,
            shape: Shape::default(),
            plan: None,
            background: Arc::default(),
            listening_sockets: Vec::new(),
            steering_levels: BTreeMap::new(),
            are_datagrams_held: false,
            adopters: Arc::default(),
            predecessor: None,
            successor: None,
            zones: Zones::new(),
            kept: None,
            held: None,
            express: ExpressLane::default(),
            gates: HeldGates::default(),
            mutex: Arc::new(AcceptMutex::new()),
            board: LaneBoard::private().ok(),
            steering: None,
            watchdog: Watchdog::default(),
            rates: Rates::default(),
            self_checks: Arc::default(),
            lane_gates: Vec::new(),
        }
    }

    /// Tells which sockets of removed addresses nothing uses any more.
    fn report_closed_gates(&mut self) {
        let closed = self.gates.take_closed();
        if !closed.is_empty() {
            self.reporter.gates_closed(closed);
        }
    }

    /// Maps the memory that outlives this process, which the first configuration brings.
    fn take_kept(&mut self, generation: &mut Generation) {
        let Some(kept) = take_extra(generation, KEPT_NAME) else {
            return;
        };
        if self.kept.is_some() {
            return;
        }
        match SharedWords::map(kept.descriptor.as_fd(), KEPT_WORDS) {
            Ok(words) => self.kept = Some(Arc::new(words)),
            Err(error) => generation.error_log.event(
                Level::Warn,
                format_args!(
                    "keys of TLS tickets are not handed on to the next process: mmap() failed \
                     ({error})"
                ),
            ),
        }
    }

    /// Maps the memory with what commands have changed. That of another master takes the place of
    /// the memory before, whose values it has.
    fn take_held(&mut self, generation: &mut Generation) {
        let passed = take_extra(generation, HELD_NAME);
        let mapped = match &passed {
            Some(memory) if self.holds(memory) => return,
            Some(memory) => HeldValues::map(memory.descriptor.as_fd()),
            None if self.held.is_some() => return,
            None => HeldValues::private(),
        };
        match mapped {
            Ok(held) => self.held = Some(Arc::new(held)),
            Err(error) => generation.error_log.event(
                Level::Warn,
                format_args!("changes by commands end with the process: mmap() failed ({error})"),
            ),
        }
    }

    /// Has this process carry out commands from now on, where it `serves`: the one before changes
    /// nothing any more, and the plan prepares for what it has left.
    fn claim_changes(&self, serves: bool) {
        if let Some(held) = self.held.as_ref().filter(|_| serves) {
            held.take();
        }
    }

    fn holds(&self, memory: &Extra) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.is_of(memory.descriptor.as_fd()))
    }

    /// Maps the board when the first steered address brings it. Returns whether it is new.
    fn take_board(&mut self, generation: &mut Generation) -> bool {
        if self.steering.is_some() {
            return false;
        }
        let mut extras = generation.extras.drain(..);
        let Some(board) = extras.find(|extra| extra.name == BOARD_NAME) else {
            return false;
        };
        match LaneBoard::map(board.descriptor.as_fd()) {
            Ok(mapped) => {
                self.process.common.flows.set_board(&mapped);
                self.board = Some(mapped);
                self.steering = Some(board.descriptor);
            }
            Err(error) => generation.error_log.event(
                Level::Warn,
                format_args!("lanes cannot be steered by load: mmap() failed ({error})"),
            ),
        }
        self.steering.is_some()
    }

    /// A lane's pulse, for a lane that has none yet.
    fn heartbeat(&self, lane: usize, fresh_board: bool) -> Option<Box<dyn Pulse>> {
        if lane < self.lanes.len() && !fresh_board {
            return None;
        }
        self.pulse(lane)
    }

    pub(super) fn pulse(&self, lane: usize) -> Option<Box<dyn Pulse>> {
        let pulse = self.board.as_ref()?.pulse(lane)?;
        Some(Box::new(pulse))
    }

    pub(super) fn accept_settings(&self, plan: &Plans, lane: usize) -> AcceptSettings {
        let events = &plan.http.events;
        let mutual = plan
            .listens()
            .any(|listen| listen.mode == AcceptMode::Mutex);
        AcceptSettings {
            connections_max: events.connections_max,
            multi_accept: events.multi_accept,
            mutex_delay_ms: events.accept_mutex_delay_ms,
            mutex: mutual.then(|| self.mutex.clone()),
            lane,
        }
    }

    /// Starts the lanes that are missing, lets those that are too many finish. Returns how many
    /// were told, and how many of them have taken the plan up.
    fn place(
        &mut self,
        generation: &mut Generation,
        plan: &Plans,
        listening_sockets: &[(usize, Option<usize>, Arc<OwnedFd>)],
    ) -> io::Result<(usize, usize)> {
        let fresh_board = self.take_board(generation);
        let process = &generation.configuration.settings.process;
        let told = process.lanes.max(self.lanes.len());
        let (done, finished) = sync_channel(told);
        self.dismiss(process.lanes, plan, &done);
        self.lane_gates = self.gates_of_lanes(process.lanes, plan, listening_sockets);
        for index in 0..process.lanes {
            let accept = self.accept_settings(plan, index);
            let cpus = process
                .affinity
                .as_ref()
                .and_then(|affinity| affinity.lane(index));
            let apply = Apply {
                plans: plan.clone(),
                gates: self.lane_gates[index].clone(),
                accept,
                heartbeat: self.heartbeat(index, fresh_board),
                cpus: self.other_cpus(index, cpus.as_ref()),
                done: done.clone(),
            };
            if let Some(lane) = self.lanes.get_mut(index) {
                lane.cpus = cpus;
                lane.apply(apply);
                continue;
            }
            let start = self.lane_start(&generation.error_log);
            self.lanes.push(Lane::start(index, cpus, start, apply)?);
        }
        drop(done);
        Ok((told, self.wait_for(told, &finished)))
    }

    /// What a new lane is started with.
    pub(super) fn lane_start(&self, error_log: &ErrorLog) -> Start {
        Start {
            process: self.process.clone(),
            running: self.running.clone(),
            reporter: self.reporter.clone(),
            error_log: error_log.clone(),
        }
    }

    /// The gates of each of so many lanes.
    pub(super) fn gates_of_lanes(
        &self,
        lanes: usize,
        plan: &Plans,
        listening_sockets: &[(usize, Option<usize>, Arc<OwnedFd>)],
    ) -> Vec<Vec<LaneGate>> {
        let of_lane = |lane| {
            let mut gates = gates_of(lane, lanes, plan, listening_sockets);
            gates.retain(|gate| self.may_open(gate));
            gates
        };
        (0..lanes).map(of_lane).collect()
    }

    /// Whether lanes may watch a gate.
    pub(super) fn may_open(&self, gate: &LaneGate) -> bool {
        !self.are_datagrams_held || gate.kind != Kind::Datagram
    }

    /// Starts what a plan has run in the background, before a lane takes the plan up.
    fn start_services(&self, plan: &Plans, error_log: &ErrorLog) {
        let services = plan.services();
        if let Err(error) = self.background.start(plan.generation, &services) {
            error_log.event(
                Level::Alert,
                format_args!(
                    "cannot start the thread that looks up names again, checks upstream servers \
                     and cleans caches ({error})"
                ),
            );
        }
    }

    /// Tells the services of the plan in force that are not among `wanted` that they are left.
    fn leave_services(&self, wanted: &[Arc<dyn background::Service>]) {
        let wanted: Vec<usize> = wanted.iter().map(|one| one.identity()).collect();
        let services = self.plan.iter().flat_map(Plans::services);
        services
            .filter(|service| !wanted.contains(&service.identity()))
            .for_each(|service| service.leave());
    }

    /// Lets the lanes from `count` on leave; those before them are their successors.
    fn dismiss(&mut self, count: usize, plan: &Plans, done: &SyncSender<()>) {
        self.leaving.retain(|lane| !lane.has_ended());
        if self.lanes.len() <= count {
            return;
        }
        let going = self.lanes.split_off(count);
        let successors: Vec<_> = self.lanes.iter().map(Lane::mailbox).collect();
        for lane in going {
            lane.send(Command::Leave(Box::new(Leave {
                plans: plan.clone(),
                successors: successors.clone(),
                done: done.clone(),
            })));
            self.leaving.push(lane);
        }
    }

    /// The CPUs for a running lane, where they are others than before.
    fn other_cpus(&self, lane: usize, wanted: Option<&CpuSet>) -> Option<CpuSet> {
        let lane = self.lanes.get(lane)?;
        if lane.cpus.as_ref() == wanted {
            return None;
        }
        // A lane that is not to be pinned any more may run wherever the process may.
        wanted.cloned().or_else(|| CpuSet::of_this_thread().ok())
    }

    /// Waits for so many answers; returns how many came in time. Silent lanes are
    /// looked after as ever.
    fn wait_for(&mut self, count: usize, answers: &Receiver<()>) -> usize {
        let until = Instant::now() + APPLY_TIMEOUT;
        let mut came = 0;
        while came < count && Instant::now() < until {
            match answers.recv_timeout(APPLY_LOOK) {
                Ok(()) => came += 1,
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        came
    }

    /// Connections that are open, those moved to another lane so far, and those that we have closed
    /// or failed so far.
    fn connection_totals(&self) -> [u64; 3] {
        let total = |reason: CloseReason| {
            let closed = |lane: &HttpCounters| lane.closed[reason as usize].value();
            self.counters
                .lanes()
                .iter()
                .map(|lane| closed(lane))
                .sum::<u64>()
        };
        [
            self.counters.total(|lane| &lane.active),
            self.counters.total(|lane| &lane.moved),
            total(CloseReason::Failed) + total(CloseReason::Drained),
        ]
    }

    /// What this configuration has changed, and what became of the connections meanwhile.
    fn report(&mut self, configuration: &Configuration, before: [u64; 3]) -> Value {
        let Some(plan) = &self.plan else {
            return Value::Null;
        };
        let shape = Shape::of(configuration, plan, &self.zones);
        let mut report = self.shape.changes(&shape);
        self.shape = shape;
        let [_, moved, closed] = self.connection_totals();
        let [open, moved_before, closed_before] = before;
        let closed = closed.saturating_sub(closed_before);
        report["connections"] = json!({
            "kept": open.saturating_sub(closed),
            "moved": moved.saturating_sub(moved_before),
            "closed": closed,
        });
        report
    }

    pub(super) fn view(&self) -> Option<LaneView<'_>> {
        Some(LaneView {
            lanes: &self.lanes,
            gates: &self.lane_gates,
            board: self.board.as_deref()?,
            mutex: &self.mutex,
            counters: &self.counters,
        })
    }

    pub(super) fn all_lanes(&self) -> impl Iterator<Item = &Lane> {
        let regular = self.lanes.iter().chain(&self.leaving);
        regular.chain(&self.standby_lane)
    }

    /// Builds the plan of a configuration, and has the lanes serve it.
    fn serve(&mut self, mut generation: Generation, is_public: bool) -> Result<Value, String> {
        let mut zones = std::mem::take(&mut self.zones);
        let configuration = &generation.configuration;
        let mut site = BuildContext::serving(
            configuration,
            &generation.logs,
            &generation.error_log,
            &mut zones,
            self.kept.clone(),
            self.held.clone(),
            self.express.memory(),
        );
        let built = plans::build(configuration, generation.number, &mut site);
        let publisher = site.publisher();
        if built.is_ok() {
            site.keep_zones();
        }
        self.zones = zones;
        let mut plan = built.map_err(|errors| errors.to_string())?;
        let (reporter, background) = (self.reporter.clone(), self.background.clone());
        let number = generation.number;
        plans::on_release(&mut plan, move || {
            background.stop(number);
            reporter.released(number);
        });
        let sockets = std::mem::take(&mut generation.listening_sockets);
        let (listening_sockets, steering_levels) = self.gates.replace(sockets);
        let timeout_ms = generation.configuration.settings.lane_rescue_timeout_ms;
        self.watchdog.begin(timeout_ms, &generation.error_log);
        let before = self.connection_totals();
        let publisher_before = self.express.publisher();
        if listening_sockets.is_empty() {
            self.express.end();
        } else {
            self.express.begin(&plan.http, publisher);
        }
        self.claim_changes(is_public || plan.listens().next().is_none());
        self.leave_services(&plan.services());
        self.start_services(&plan, &generation.error_log);
        let applied = self.place(&mut generation, &plan, &listening_sockets);
        let (told, ready) = applied.map_err(|error| {
            if let Some(before) = &self.plan {
                self.express.begin(&before.http, publisher_before);
                self.start_services(before, &generation.error_log);
            }
            format!("a lane cannot be started ({error})")
        })?;
        (self.listening_sockets, self.steering_levels) = (listening_sockets, steering_levels);
        self.choose_adopters();
        if self.listening_sockets.is_empty() {
            self.hand_flows_over(&generation.error_log);
        } else {
            self.process.common.flows.take_up();
        }
        self.apply_to_standby_lane(&plan);
        self.plan = Some(plan);
        self.show_gates();
        let report = self.report(&generation.configuration, before);
        if ready < told {
            let late = told - ready;
            generation.error_log.event(
                Level::Warn,
                format_args!(
                    "{late} of {told} lanes are busy; each switches to the new configuration when \
                     it responds"
                ),
            );
        }
        Ok(report)
    }
}

impl Service for LaneService {
    fn apply(&mut self, mut generation: Generation) -> Result<Value, String> {
        self.take_kept(&mut generation);
        self.take_held(&mut generation);
        self.follow_predecessor(&mut generation);
        let mut sockets = generation.listening_sockets.iter();
        let is_public = sockets.any(|socket| socket.gate < CHECK_GATES_FROM);
        let extras = &mut generation.extras;
        let log = generation.error_log.clone();
        let replaced = self.express.take(extras, &log);
        let applied = self.serve(generation, is_public);
        self.report_closed_gates();
        if applied.is_ok() && is_public {
            self.take_connections(&log);
        }
        if let (Err(_), Some(replaced)) = (&applied, replaced) {
            self.express.put_back(replaced);
        }
        applied
    }

    fn ask(&mut self, number: u64, request: Request) {
        self.answer(number, request);
    }

    fn look(&mut self) -> Option<Duration> {
        let mut watchdog = std::mem::take(&mut self.watchdog);
        let next = self.view().and_then(|view| watchdog.look(&view));
        if watchdog.take_given_up() {
            self.reporter.stuck();
        }
        self.watchdog = watchdog;
        self.choose_adopters();
        self.rates.note(&self.counters);
        self.start_or_end_standby_lane();
        self.report_closed_gates();
        let closing = self.gates.are_closing().then_some(CLOSING_LOOK);
        next.into_iter().chain(closing).min()
    }

    fn holdings(&self) -> io::Result<Holdings> {
        let mut held = Holdings::default();
        for (.., socket) in &self.listening_sockets {
            if let Some(number) = self.gates.number_of(socket) {
                held.gates.push((number, socket.try_clone()?));
            }
        }
        let board = self.steering.as_ref();
        held.board = board.map(OwnedFd::try_clone).transpose()?;
        held.express = self.express.passed()?;
        held.changes = self.held.as_ref().map(|held| held.text());
        Ok(held)
    }

    fn counts(&mut self, counts: MasterCounts) {
        self.counters.set_process(|process| {
            process.reloads = counts.reloads;
            process.reloads_failed = counts.reloads_failed;
            process.restarts = counts.restarts;
            process.cores = counts.cores;
        });
    }

    fn flush_logs(&mut self) {
        let count = self.all_lanes().count();
        let (done, finished) = sync_channel(count);
        for lane in self.all_lanes() {
            lane.send(Command::Flush { done: done.clone() });
        }
        drop(done);
        self.wait_for(count, &finished);
    }

    fn announce_quit(&mut self) {
        for lane in self.all_lanes() {
            lane.send(Command::Announce);
        }
    }

    fn be_succeeded(&mut self, links: SuccessionLinks, log: &ErrorLog) {
        self.add_successor(links, log);
    }

    fn read_datagrams(&mut self) {
        self.open_datagram_gates();
    }

    fn quit(&mut self) {
        self.leave_services(&[]);
        self.express.end();
        self.gates.clear();
        self.listening_sockets.clear();
        self.lane_gates.clear();
        if self.lanes.is_empty() {
            self.reporter.drained();
        }
        let successors = self.ready_successors();
        for lane in self.all_lanes() {
            let successors = successors.clone();
            lane.send(Command::Quit { successors });
        }
        for (number, lane) in self.lanes.iter().enumerate() {
            if self.watchdog.is_given_up(number) {
                lane.give_up();
            }
        }
        if self.process.common.flows.has_successor() {
            // Lanes have closed their gates when they have done this too.
            self.flush_logs();
            let log = self.watchdog.log().cloned();
            self.hand_flows_over(&log.unwrap_or_else(ErrorLog::none));
        }
    }

    fn cut(&mut self, until_ms: u64) {
        for lane in self.all_lanes() {
            lane.send(Command::Cut { until_ms });
        }
    }

    fn stop(&mut self) {
        self.express.end();
        for lane in self.all_lanes() {
            lane.send(Command::Terminate);
        }
        let regular = self.lanes.drain(..).chain(self.leaving.drain(..));
        for lane in regular.chain(self.standby_lane.take()) {
            lane.join();
        }
    }

    fn has_given_up(&self) -> bool {
        (0..self.lanes.len()).any(|lane| self.watchdog.is_given_up(lane))
    }

    fn finish(&mut self) {
        self.background.finish();
    }
}

/// Takes a descriptor of that name out of what a generation has.
fn take_extra(generation: &mut Generation, name: &str) -> Option<Extra> {
    let mut extras = generation.extras.iter();
    let place = extras.position(|extra| extra.name == name)?;
    Some(generation.extras.remove(place))
}

/// The gates of one of `lanes` lanes: its own of the addresses that have one a lane, and the shared
/// ones. Datagrams of a shared one are one lane's, so that a flow stays with its lane.
fn gates_of(
    lane: usize,
    lanes: usize,
    plan: &Plans,
    listening_sockets: &[(usize, Option<usize>, Arc<OwnedFd>)],
) -> Vec<LaneGate> {
    let mine = listening_sockets
        .iter()
        .filter(|(_, owner, _)| owner.is_none_or(|owner| owner == lane));
    mine.filter(|(place, owner, _)| {
        owner.is_some() || place % lanes == lane || !is_udp(plan, *place)
    })
    .filter_map(|listening| gate_of(plan, listening))
    .collect()
}

/// The gates of all lanes.
pub(super) fn gates_of_all(
    plan: &Plans,
    listening_sockets: &[(usize, Option<usize>, Arc<OwnedFd>)],
) -> Vec<LaneGate> {
    let gates = listening_sockets.iter();
    gates
        .filter_map(|listening| gate_of(plan, listening))
        .collect()
}

fn is_udp(plan: &Plans, place: usize) -> bool {
    let listen = plan.listens().nth(place);
    listen.is_some_and(|listen| listen.address.kind() == Kind::Datagram)
}

fn gate_of(
    plan: &Plans,
    (place, owner, socket): &(usize, Option<usize>, Arc<OwnedFd>),
) -> Option<LaneGate> {
    let listen = plan.listens().nth(*place)?;
    let mut mode = listen.mode;
    if owner.is_some() && !mode.has_gate_per_lane() {
        // Through it an upgrade asks this very lane, which is not to wait for the mutex.
        mode = AcceptMode::Reuseport;
    }
    Some(LaneGate {
        number: plan.gate_number(*place)?,
        socket: socket.clone(),
        mode,
        kind: listen.address.kind(),
    })
}
