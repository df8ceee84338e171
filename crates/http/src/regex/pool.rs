//! Where heavy matches are finished: threads that are no lanes, few of them, so that hostile
//! requests cannot take the machine.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot;
use turnpike_lane::affinity::CpuSet;
use turnpike_lane::sys::pcre::{self, MatchFailure};
use turnpike_lane::sys::process;

use super::{Allowance, Groups, Program};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::phase::{Verdict, Work};

/// Matches that go on at once. Each takes a CPU; lanes need them more.
const THREADS_MAX: usize = 4;

/// Matches that wait for a thread. With all of them as heavy as can be, the last one waits for
/// five seconds; beyond, requests are answered with 500 at once.
const QUEUE_MAX: usize = 64;

/// Stack of compiled code in such a thread: eight times that of a lane.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Memory of the interpreter in such a thread, in KiB. It is given back after each match.
pub(super) const HEAP_KIB: u32 = 64 * 1024;

/// Lower than the lanes', which have requests to serve.
const PRIORITY: i32 = 10;

/// What became of a match off the lane.
pub(super) type Found = Result<Option<Groups>, Refusal>;

/// Why a match off the lane has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// PCRE2 says so.
    Failed(MatchFailure),
    /// Too many others wait.
    Full,
    /// The thread is gone.
    Lost,
}

/// A match to be finished.
pub(super) struct Job {
    pub(super) program: Arc<Program>,
    pub(super) subject: Arc<[u8]>,
}

struct Queued {
    job: Job,
    found: oneshot::Sender<Found>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Queued>,
    threads: usize,
    idle: usize,
    /// Nothing is begun while a test holds it.
    #[cfg(test)]
    held: bool,
}

struct Pool {
    queue: Mutex<Queue>,
    changed: Condvar,
}

static POOL: Pool = Pool {
    queue: Mutex::new(Queue {
        jobs: VecDeque::new(),
        threads: 0,
        idle: 0,
        #[cfg(test)]
        held: false,
    }),
    changed: Condvar::new(),
};

/// CPUs of the process. Lanes are tied to one each, and a thread inherits that.
static CPUS: OnceLock<Option<CpuSet>> = OnceLock::new();

/// Called by who reads the configuration, which no lane does.
pub(super) fn prepare() {
    CPUS.get_or_init(|| CpuSet::of_this_thread().ok());
}

/// Gives a match to a thread. Refuses when too many wait already.
fn submit(job: Job) -> Result<oneshot::Receiver<Found>, Refusal> {
    let mut queue = POOL.queue.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.jobs.len() >= QUEUE_MAX {
        return Err(Refusal::Full);
    }
    if queue.idle <= queue.jobs.len() && queue.threads < THREADS_MAX {
        match start_thread() {
            Ok(()) => queue.threads += 1,
            Err(_) if queue.threads == 0 => return Err(Refusal::Lost),
            Err(_) => {}
        }
    }
    let (found, receiver) = oneshot::channel();
    queue.jobs.push_back(Queued { job, found });
    drop(queue);
    POOL.changed.notify_one();
    Ok(receiver)
}

fn start_thread() -> io::Result<()> {
    let builder = thread::Builder::new().name("regex".to_owned());
    builder.spawn(work).map(drop)
}

fn work() {
    // Without either, matches go on all the same, only less considerately.
    if let Some(Some(cpus)) = CPUS.get() {
        let _ = cpus.pin_this_thread();
    }
    let _ = process::set_priority(PRIORITY);
    pcre::use_stack(STACK_BYTES);
    loop {
        let Queued { job, found } = next();
        // Whoever asked may have gone meanwhile.
        if !found.is_closed() {
            let _ = found.send(job.run());
            pcre::forget_room();
        }
    }
}

fn next() -> Queued {
    let mut queue = POOL.queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        #[cfg(test)]
        let queued = if queue.held {
            None
        } else {
            queue.jobs.pop_front()
        };
        #[cfg(not(test))]
        let queued = queue.jobs.pop_front();
        if let Some(queued) = queued {
            return queued;
        }
        queue.idle += 1;
        let woken = POOL.changed.wait(queue);
        queue = woken.unwrap_or_else(PoisonError::into_inner);
        queue.idle -= 1;
    }
}

impl Job {
    fn run(&self) -> Found {
        let mut groups = Groups::new();
        let mut allowance = Allowance::OFF_LANE;
        match self
            .program
            .off_lane(&self.subject, &mut allowance, &mut groups)
        {
            Ok(true) => Ok(Some(groups)),
            Ok(false) => Ok(None),
            Err(failure) => Err(Refusal::Failed(failure)),
        }
    }
}

/// Waits until a match has been finished, and gives what was found to the exchange.
pub(crate) struct OffLane(pub(super) Job);

impl Work for OffLane {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let (serial, subject) = (self.0.program.serial, self.0.subject.clone());
        let found = match submit(self.0) {
            Err(refusal) => Err(refusal),
            Ok(receiver) => match client.while_there(receiver).await {
                Some(found) => found.unwrap_or(Err(Refusal::Lost)),
                None => return exchange.client_went_away(),
            },
        };
        exchange.regex.get_mut().learn(serial, subject, found);
        Verdict::Declined
    }
}

/// Lets no match off the lane begin until it is dropped.
#[cfg(test)]
pub(crate) struct Hold;

#[cfg(test)]
impl Hold {
    pub(crate) fn new() -> Hold {
        POOL.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .held = true;
        Hold
    }

    /// How many matches wait.
    pub(crate) fn waiting() -> usize {
        POOL.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .len()
    }
}

#[cfg(test)]
impl Drop for Hold {
    fn drop(&mut self) {
        POOL.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .held = false;
        POOL.changed.notify_all();
    }
}
