//! One run: threads start together, the main thread watches, the figures are added up.

use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::diagnosis;
use crate::environment::{Machine, Snapshot, ThreadTime};
use crate::plan::Plan;
use crate::sys;
use crate::tally::{ErrorKind, Tally};
use crate::thread::Clock;
use crate::worker::{Control, Progress, Worker};

/// Time between the main thread's looks at the run.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

/// How often a reason is looked for why nothing is answered: a busy machine may not answer at the
/// first look.
const LOOKS_MAX: u32 = 8;

/// How long several endpoints may refuse every connection until the run ends.
const REFUSED_TIME: Duration = Duration::from_secs(1);

/// Whether a watched run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As planned.
    GoOn,
    /// Break off now and report what there is.
    BreakOff,
}

/// Sees the run while it goes on; called by the main thread.
pub(crate) trait Watch {
    /// Waits up to `interval`, looks at the figures so far and decides.
    fn look(&mut self, interval: Duration, elapsed: Duration, progress: &[Progress]) -> Verdict;
}

/// One thread's part.
pub(crate) struct ThreadReport {
    pub(crate) issued: u64,
    pub(crate) completed: u64,
    /// Spent awaiting answers awake: on a CPU, and yet a pause.
    pub(crate) awake_ns: u64,
    pub(crate) time: ThreadTime,
    pub(crate) wall_ns: u64,
}

/// A run's figures.
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) threads: Vec<ThreadReport>,
    /// From the end of the warm-up to the end of the test, or to the last answer if that is later.
    pub(crate) measured: Duration,
    pub(crate) started: SystemTime,
    /// When the nanoseconds of the figures began to count.
    pub(crate) clock_started: SystemTime,
    pub(crate) interrupted: bool,
    /// Whether the run ended at once, because the target does not listen.
    pub(crate) refused: bool,
    /// Why no request could be answered, where the server is there and that is for certain.
    pub(crate) hopeless: Option<String>,
    pub(crate) machine: Machine,
    pub(crate) before: Snapshot,
    /// The most connections were open, as far as was seen.
    pub(crate) peak: Snapshot,
    pub(crate) open_max: u64,
    pub(crate) after: Snapshot,
}

/// Why there was no run.
#[derive(Debug)]
pub(crate) enum RunError {
    /// A thread cannot be started, or has no epoll set.
    Thread(String),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Thread(reason) => write!(formatter, "unable to create thread: {reason}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Carries out the plan.
///
/// # Errors
/// When a thread cannot be started.
pub(crate) fn run(plan: &Plan, watch: &mut dyn Watch) -> Result<Outcome, RunError> {
    turnpike_host::raise_file_limit();
    let machine = Machine::read();
    let before = Snapshot::take();
    let started = SystemTime::now();
    let progress: Vec<Mutex<Progress>> = (0..plan.threads)
        .map(|_| Mutex::new(Progress::default()))
        .collect();
    let control = Control::default();
    let start = Start {
        barrier: Barrier::new(plan.threads),
        clock: OnceLock::new(),
    };
    let clock = Clock::new();
    let mut watched = Watched::default();
    let results = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for (index, progress) in progress.iter().enumerate() {
            let (control, start) = (&control, &start);
            let body = move || thread_main(plan, index, start, control, progress);
            let spawned = std::thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn_scoped(scope, body);
            match spawned {
                Ok(handle) => handles.push(handle),
                // Threads that did start wait for the others, which will never come.
                Err(error) => fatal_spawn(&error),
            }
        }
        watched.watch(plan, watch, (&control, clock), &progress, &handles);
        handles
            .into_iter()
            .map(ScopedJoinHandle::join)
            .collect::<Vec<_>>()
    });
    let clock_started = start.clock.get().map_or(started, |clock| {
        SystemTime::now() - Duration::from_nanos(clock.now_ns())
    });
    let after = Snapshot::take();
    let mut tally = Tally::default();
    let mut threads = Vec::new();
    for result in results {
        let (part, report) = result
            .map_err(|_| RunError::Thread("it panicked".to_owned()))?
            .map_err(|error| RunError::Thread(error.to_string()))?;
        tally.merge(&part);
        threads.push(report);
    }
    let walls_ns = threads.iter().map(|thread| thread.wall_ns);
    let wall_ns = walls_ns.max().unwrap_or(0);
    let measured = measured(plan, &tally, wall_ns, watched.interrupted);
    // A short run is over before it is looked at.
    let hopeless = watched.hopeless;
    let hopeless = hopeless.or_else(|| diagnosis::hopeless(plan, &tally.errors, tally.completed));
    Ok(Outcome {
        tally,
        threads,
        measured,
        started,
        clock_started,
        interrupted: watched.interrupted,
        refused: watched.refused,
        hopeless,
        machine,
        before,
        peak: watched.peak,
        open_max: watched.open_max,
        after,
    })
}

/// Brings all threads to the same start.
struct Start {
    barrier: Barrier,
    clock: OnceLock<Clock>,
}

/// What the main thread saw.
#[derive(Default)]
struct Watched {
    interrupted: bool,
    refused: bool,
    /// Why no request can be answered, and how often that was looked for.
    hopeless: Option<String>,
    looks: u32,
    peak: Snapshot,
    open_max: u64,
}

impl Watched {
    fn watch<T>(
        &mut self,
        plan: &Plan,
        watch: &mut dyn Watch,
        (control, clock): (&Control, Clock),
        progress: &[Mutex<Progress>],
        handles: &[ScopedJoinHandle<'_, T>],
    ) {
        while !handles.iter().all(ScopedJoinHandle::is_finished) {
            let seen: Vec<Progress> = progress
                .iter()
                .map(|shared| {
                    shared
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone()
                })
                .collect();
            let open: u64 = seen.iter().map(|thread| thread.open).sum();
            if open > self.open_max {
                self.open_max = open;
                self.peak = Snapshot::take();
            }
            let elapsed = Duration::from_nanos(clock.now_ns());
            if watch.look(WATCH_INTERVAL, elapsed, &seen) == Verdict::BreakOff {
                self.interrupted = true;
                control.abandon();
            }
            // One of several endpoints may be the only one that refuses.
            let is_only = plan.targets.endpoints.len() == 1;
            if (is_only || elapsed > REFUSED_TIME) && is_refused(&seen) {
                self.refused = true;
                control.abandon();
            }
            self.look_for_reason(plan, control, &seen);
        }
    }
}

impl Watched {
    /// Ends a run in which nothing can be answered.
    fn look_for_reason(&mut self, plan: &Plan, control: &Control, seen: &[Progress]) {
        let answered: u64 = seen.iter().map(|one| one.completed).sum();
        let is_failing = |one: &&Progress| diagnosis::may_be_hopeless(plan, &one.errors);
        let Some(failing) = seen.iter().find(is_failing) else {
            return;
        };
        if answered == 0 && self.hopeless.is_none() && self.looks < LOOKS_MAX {
            self.looks += 1;
            self.hopeless = diagnosis::hopeless(plan, &failing.errors, answered);
            if self.hopeless.is_some() {
                control.abandon();
            }
        }
    }
}

/// Whether every attempt to connect was refused so far: as wrk, the run then ends at once. A server
/// that goes away later is measured.
fn is_refused(seen: &[Progress]) -> bool {
    let refused = seen.iter().map(|one| one.errors.of(ErrorKind::Refused));
    seen.iter().all(|one| one.connections == 0) && refused.sum::<u64>() > 0
}

fn thread_main(
    plan: &Plan,
    index: usize,
    start: &Start,
    control: &Control,
    progress: &Mutex<Progress>,
) -> Result<(Tally, ThreadReport), nix::Error> {
    // Without a table of its own the thread shares the process's limit: slower, not wrong.
    let _ = sys::unshare_descriptors();
    if !plan.cpus.is_empty() {
        let mut set = CpuSet::new();
        set.set(plan.cpus.get(index % plan.cpus.len()).copied().unwrap_or(0))?;
        // A CPU that is not there leaves the thread where it is; the report names its CPU time.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
    // Sleeps end on time, not up to 50 microseconds later.
    let _ = nix::sys::prctl::set_timerslack(1);
    let worker = Worker::new(plan, index);
    start.barrier.wait();
    let clock = *start.clock.get_or_init(Clock::new);
    let before = ThreadTime::read();
    let tally = worker?.run(clock, control, progress);
    let time = ThreadTime::read().since(before);
    let report = ThreadReport {
        issued: tally.issued,
        completed: tally.completed,
        awake_ns: tally.awake_ns,
        time,
        wall_ns: clock.now_ns(),
    };
    Ok((tally, report))
}

/// The time the figures belong to: answers to requests of the test that came after its end
/// count, so the time they took counts too.
fn measured(plan: &Plan, tally: &Tally, wall_ns: u64, interrupted: bool) -> Duration {
    let warmup = plan.warmup;
    let last = Duration::from_nanos(tally.last_answer_ns);
    let planned = plan.duration.map(|duration| duration + warmup);
    let end = match planned {
        _ if interrupted => Duration::from_nanos(wall_ns),
        Some(planned) if tally.issued < plan.requests.unwrap_or(u64::MAX) => planned.max(last),
        _ => last,
    };
    end.saturating_sub(warmup).max(Duration::from_micros(1))
}

/// Threads that wait at the barrier cannot be called back, so the process ends.
fn fatal_spawn(error: &std::io::Error) -> ! {
    eprintln!("unable to create thread: {error}");
    std::process::exit(2);
}
