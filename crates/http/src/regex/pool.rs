//! Where heavy matches are finished: threads that are no lanes, few of them, so that hostile
//! requests cannot take the machine.

use std::sync::Arc;

use turnpike_lane::pool::{PoolLimits, PoolRefusal, WorkerPool};
use turnpike_lane::sys::pcre::{self, MatchFailure};
use turnpike_lane::sys::process;

use turnpike_plan::regex::{Allowance, Groups, Program};

/// Matches that go on at once each take a CPU, and lanes need them more: four threads. With all
/// matches that wait as heavy as can be, the last one waits for five seconds; beyond, requests are
/// answered with 500 at once.
const LIMITS: PoolLimits = PoolLimits {
    name: "regex",
    threads_max: 4,
    queued_max: 64,
};

static POOL: WorkerPool = WorkerPool::new(LIMITS).preparing_threads(prepare_thread);

/// Stack of compiled code in such a thread: eight times that of a lane.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Lower than the lanes', which have requests to serve.
const PRIORITY: i32 = 10;

/// What became of a match off the lane.
pub(super) type MatchResult = Result<Option<Groups>, Refusal>;

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

fn prepare_thread() {
    // Without it matches go on all the same, only less considerately.
    let _ = process::set_priority(PRIORITY);
    pcre::use_stack(STACK_BYTES);
}

impl Job {
    fn run(&self) -> MatchResult {
        let mut groups = Groups::new();
        let mut allowance = Allowance::OFF_LANE;
        let outcome = self
            .program
            .off_lane(&self.subject, &mut allowance, &mut groups);
        pcre::forget_room();
        match outcome {
            Ok(true) => Ok(Some(groups)),
            Ok(false) => Ok(None),
            Err(failure) => Err(Refusal::Failed(failure)),
        }
    }
}

/// Hands a match to a thread; `None` comes of it when the thread is gone.
pub(super) fn submit(job: Job) -> Result<impl Future<Output = Option<MatchResult>>, Refusal> {
    POOL.submit(move || job.run())
        .map_err(|refusal| match refusal {
            PoolRefusal::Full => Refusal::Full,
            PoolRefusal::NoThread(_) => Refusal::Lost,
        })
}

/// Lets no match off the lane begin until it is dropped: it occupies all threads.
#[cfg(test)]
pub(crate) struct Hold {
    _release: std::sync::mpsc::Sender<()>,
}

#[cfg(test)]
impl Hold {
    pub(crate) fn new() -> Hold {
        use std::sync::Mutex;
        use std::sync::mpsc::channel;
        let (release, held) = channel::<()>();
        let (begins, begun) = channel();
        let held = Arc::new(Mutex::new(held));
        for _ in 0..LIMITS.threads_max {
            let (held, begins) = (held.clone(), begins.clone());
            let work = move || {
                let _ = begins.send(());
                // It ends when the other side is dropped.
                drop(held.lock().map(|held| held.recv()));
            };
            assert!(POOL.spawn(work).is_ok(), "the pool is idle");
        }
        for _ in 0..LIMITS.threads_max {
            assert!(begun.recv().is_ok(), "a thread begins");
        }
        Hold { _release: release }
    }

    /// How many matches wait.
    pub(crate) fn waiting() -> usize {
        POOL.waiting()
    }
}
