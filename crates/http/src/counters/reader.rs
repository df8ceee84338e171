//! The server's own metrics, read from the cells of all lanes and from the kernel.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};

use turnpike_lane::counters::{Distribution, Histogram};
use turnpike_lane::sys::process::{unix_ms, usage};
use turnpike_lane::sys::socket_option;

use super::{AllCounters, COUNTERS, CloseReason, Counter, HttpCounters};
use turnpike_plan::metrics::{Kind, Reader, Row, Samples};
use turnpike_plan::product::{NGINX_VERSION, TURNPIKE_VERSION};

/// Most descriptors that are counted one by one. Each costs about a microsecond, in which the lane
/// serves nobody.
const OPEN_FILES_COUNTED_MAX: usize = 10_000;

/// A listening socket whose queue is counted.
pub struct WatchedGate {
    address: String,
    /// The lane; `None`: all of them.
    lane: Option<usize>,
    socket: Weak<OwnedFd>,
}

impl WatchedGate {
    /// A socket that listens at this address for a lane, or for all of them. It is not kept open.
    pub fn new(address: String, lane: Option<usize>, socket: &Arc<OwnedFd>) -> Self {
        Self {
            address,
            lane,
            socket: Arc::downgrade(socket),
        }
    }
}

/// What only the process knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounts {
    /// The configuration in force.
    pub generation: u64,
    /// Configurations that were put in force after the first.
    pub reloads: u64,
    /// The others.
    pub reloads_failed: u64,
    /// Serving processes that took the place of one that had died.
    pub restarts: u64,
    /// Serving processes of which the kernel has written a core file.
    pub cores: u64,
}

/// How the last reload ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastReload {
    /// When the active configuration was activated, in unix seconds.
    activated_s: u64,
    has_failed: bool,
}

const fn row(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Row {
    Row {
        name,
        kind,
        unit,
        labels,
        help,
    }
}

static GENERATION: Row = row(
    "generation",
    Kind::Gauge,
    "generations",
    &[],
    "Number of the active configuration.",
);
static RELOADS: Row = row(
    "reloads",
    Kind::Counter,
    "reloads",
    &["outcome"],
    "Reloads, by outcome: the new configuration is active (done) or was rejected (failed).",
);
static RESTARTS: Row = row(
    "serving_restarts",
    Kind::Counter,
    "processes",
    &[],
    "Serving processes that were started because the previous one died.",
);
static CORES: Row = row(
    "serving_cores",
    Kind::Counter,
    "processes",
    &[],
    "Serving processes for which the kernel wrote a core file.",
);
static LANES: Row = row("lanes", Kind::Gauge, "lanes", &[], "Lanes that run.");
static STATUSES: Row = row(
    "requests_by_status",
    Kind::Counter,
    "requests",
    &["lane", "status"],
    "Finished requests, by response status.",
);
static CLOSED: Row = row(
    "connections_closed",
    Kind::Counter,
    "connections",
    &["lane", "reason"],
    "Closed connections, by reason.",
);
static FIRST_BYTE: Row = row(
    "accept_to_first_byte_seconds",
    Kind::Histogram,
    "seconds",
    &["lane"],
    "Time from the round in which a connection was accepted to the first byte of its first answer.",
);
static REQUEST_TIMES: Row = row(
    "request_seconds",
    Kind::Histogram,
    "seconds",
    &["lane"],
    "Time from the first byte of a request to the end of its answer. A request that is answered \
     within one round of the lane's loop is measured by the duration of the round; others are \
     measured in whole milliseconds.",
);
static BUILD: Row = row(
    "build_info",
    Kind::Gauge,
    "builds",
    &["version", "nginx_version"],
    "1, with the version of the program and the version of nginx that it is compatible with.",
);
static RELOAD_TIME: Row = row(
    "last_reload_timestamp_seconds",
    Kind::Gauge,
    "seconds",
    &[],
    "When the active configuration was activated, as a Unix time.",
);
static RELOAD_SUCCESS: Row = row(
    "last_reload_success",
    Kind::Gauge,
    "reloads",
    &[],
    "Whether the last reload was successful: 1 or 0.",
);
static CPU: Row = row(
    "process_cpu_seconds",
    Kind::Counter,
    "seconds",
    &[],
    "CPU time of the serving process.",
);
static RESIDENT: Row = row(
    "process_resident_memory_bytes",
    Kind::Gauge,
    "bytes",
    &[],
    "Resident memory of the serving process.",
);
static STARTED: Row = row(
    "process_start_time_seconds",
    Kind::Gauge,
    "seconds",
    &[],
    "When the serving process was started, as a Unix time.",
);
static FILES_MAX: Row = row(
    "process_max_fds",
    Kind::Gauge,
    "descriptors",
    &[],
    "Maximum number of open file descriptors of each lane of the serving process.",
);
static FILES_OPEN: Row = row(
    "process_open_fds",
    Kind::Gauge,
    "descriptors",
    &[],
    "Open file descriptors of the serving process. Before Linux 6.2 the figure is missing if there \
     are more than 10,000.",
);
static ROUNDS: Row = row(
    "loop_round_seconds",
    Kind::Histogram,
    "seconds",
    &["lane"],
    "Duration of a round of the lane's loop with work to do: an event may wait that long.",
);
static QUEUE: Row = row(
    "accept_queue",
    Kind::Gauge,
    "connections",
    &["address", "lane"],
    "TCP connections that wait to be accepted. Unix sockets do not report this.",
);
static QUEUE_MAX: Row = row(
    "accept_queue_max",
    Kind::Gauge,
    "connections",
    &["address", "lane"],
    "Maximum number of connections that may wait to be accepted.",
);

/// The rows beside [`COUNTERS`].
pub static OWN_ROWS: [&Row; 20] = [
    &GENERATION,
    &RELOADS,
    &RESTARTS,
    &CORES,
    &BUILD,
    &RELOAD_TIME,
    &RELOAD_SUCCESS,
    &CPU,
    &RESIDENT,
    &STARTED,
    &FILES_MAX,
    &FILES_OPEN,
    &LANES,
    &STATUSES,
    &CLOSED,
    &FIRST_BYTE,
    &REQUEST_TIMES,
    &ROUNDS,
    &QUEUE,
    &QUEUE_MAX,
];

impl AllCounters {
    /// The listening sockets from now on.
    pub fn watch_gates(&self, gates: Vec<WatchedGate>) {
        *self.gates.lock().unwrap_or_else(PoisonError::into_inner) = gates;
    }

    /// What the process counts, from now on.
    pub fn set_process(&self, change: impl FnOnce(&mut ProcessCounts)) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *process;
        change(&mut process);
        let mut last = self
            .last_reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if process.generation != before.generation {
            last.activated_s = unix_ms() / 1000;
            self.started_s.get_or_init(|| last.activated_s);
            last.has_failed = false;
        }
        last.has_failed |= process.reloads_failed > before.reloads_failed;
    }

    fn read_process(&self, samples: &mut Samples) {
        let process = *self.process.lock().unwrap_or_else(PoisonError::into_inner);
        samples.number(&GENERATION, &[], process.generation);
        samples.number(&RELOADS, &["done"], process.reloads);
        samples.number(&RELOADS, &["failed"], process.reloads_failed);
        samples.number(&RESTARTS, &[], process.restarts);
        samples.number(&CORES, &[], process.cores);
        samples.number(&BUILD, &[TURNPIKE_VERSION, NGINX_VERSION], 1);
        let last = *self
            .last_reload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        samples.number(&RELOAD_TIME, &[], last.activated_s);
        samples.number(&RELOAD_SUCCESS, &[], u64::from(!last.has_failed));
        let usage = usage();
        samples.real(&CPU, &[], usage.cpu_ns as f64 / 1e9);
        // A sandbox may keep it from us.
        if let Some(bytes) = usage.resident_bytes {
            samples.number(&RESIDENT, &[], bytes);
        }
        if let Some(started_s) = self.started_s.get() {
            samples.number(&STARTED, &[], *started_s);
        }
        samples.number(&FILES_MAX, &[], usage.files_max);
        if let Some(files) = open_files(Path::new("/proc/self/fd")) {
            samples.number(&FILES_OPEN, &[], files);
        }
    }

    fn read_gates(&self, samples: &mut Samples) {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        for gate in gates.iter() {
            let Some(socket) = gate.socket.upgrade() else {
                continue;
            };
            let Ok(info) = socket_option::tcp_info(socket.as_fd()) else {
                continue;
            };
            let lane = gate
                .lane
                .map_or_else(|| "all".to_owned(), |lane| lane.to_string());
            let labels = [gate.address.as_str(), lane.as_str()];
            samples.number(&QUEUE, &labels, u64::from(info.accept_queue));
            samples.number(&QUEUE_MAX, &labels, u64::from(info.accept_queue_max));
        }
    }
}

/// The number of descriptors that the process whose folder this is has open: the size of the folder
/// since Linux 6.2. Before, the entries are counted.
fn open_files(folder: &Path) -> Option<u64> {
    match std::fs::metadata(folder).ok()?.len() {
        0 => {
            let count = std::fs::read_dir(folder)
                .ok()?
                .take(OPEN_FILES_COUNTED_MAX + 1);
            let count = count.count();
            (count <= OPEN_FILES_COUNTED_MAX).then_some(count as u64)
        }
        size => Some(size),
    }
}

/// Where a lane's histogram is.
type HistogramOf = fn(&HttpCounters) -> &Histogram;

/// The sum over all threads that have, or had, a lane's number: one that is still finishing may
/// have that of one that was started after it.
fn read_lane(number: usize, threads: &[Arc<HttpCounters>], samples: &mut Samples) {
    let number = number.to_string();
    let sum = |pick: &dyn Fn(&HttpCounters) -> &Counter| -> u64 {
        threads.iter().map(|lane| pick(lane).value()).sum()
    };
    for entry in COUNTERS {
        samples.number(&entry.row, &[&number], sum(&entry.counter));
    }
    let mut statuses = BTreeMap::<usize, u64>::new();
    for (status, count) in threads.iter().flat_map(|lane| lane.statuses.iter()) {
        *statuses.entry(status).or_default() += count;
    }
    for (status, count) in statuses {
        samples.number(&STATUSES, &[&number, &status.to_string()], count);
    }
    for reason in CloseReason::ALL {
        let count = sum(&|lane| &lane.closed[reason as usize]);
        samples.number(&CLOSED, &[&number, reason.name()], count);
    }
    let picks: [(&'static Row, HistogramOf); 3] = [
        (&FIRST_BYTE, |lane| &lane.first_byte),
        (&REQUEST_TIMES, |lane| &lane.request_times),
        (&ROUNDS, |lane| &lane.rounds),
    ];
    for (row, histogram) in picks {
        let mut sum = Distribution::default();
        for lane in threads {
            sum.add(&histogram(lane).read());
        }
        samples.distribution(row, &[&number], sum);
    }
}

impl Reader for AllCounters {
    fn read(&self, samples: &mut Samples) {
        self.read_process(samples);
        let mut lanes = BTreeMap::<usize, Vec<Arc<HttpCounters>>>::new();
        for (number, counters) in self.numbered() {
            lanes.entry(number).or_default().push(counters);
        }
        samples.number(&LANES, &[], self.running() as u64);
        for (number, threads) in &lanes {
            read_lane(*number, threads, samples);
        }
        self.read_gates(samples);
    }
}
