//! Threads for work that would hold a lane: a password that is made to be slow, a pattern that
//! walks far.
//!
//! A pool has few threads and a short queue, both named by whoever owns it. Beyond them work is
//! refused at once, so that whoever sends too much of it delays nobody else. The threads start
//! with the first work. Nothing here knows what the work is.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::{fmt, io, thread};

use tokio::sync::oneshot;

use crate::affinity::CpuSet;

#[cfg(test)]
mod tests;

/// A pool: `static` where it is used.
pub struct WorkerPool {
    limits: PoolLimits,
    /// What each thread does before its first work.
    prepare_thread: fn(),
    state: Mutex<State>,
    more: Condvar,
}

/// What a pool may take of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The name of its threads, 15 bytes at most: the kernel cuts longer ones.
    pub name: &'static str,
    /// Most threads.
    pub threads_max: usize,
    /// Most pieces of work that wait for a thread.
    pub queued_max: usize,
}

/// Why work was not taken.
#[derive(Debug)]
pub enum PoolRefusal {
    /// As much waits as may.
    Full,
    /// There is no thread, and none could be started.
    NoThread(io::Error),
}

impl fmt::Display for PoolRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolRefusal::Full => formatter.write_str("its queue is full"),
            PoolRefusal::NoThread(error) => {
                write!(formatter, "no thread could be started: {error}")
            }
        }
    }
}

impl std::error::Error for PoolRefusal {}

struct State {
    queue: VecDeque<Box<dyn Job>>,
    threads: usize,
    busy: usize,
}

trait Job: Send {
    /// Whether nobody waits for what comes of it any more.
    fn is_abandoned(&self) -> bool;
    fn run(self: Box<Self>);
}

struct Work<W, T> {
    work: W,
    result: oneshot::Sender<T>,
}

impl<T: Send, W: FnOnce() -> T + Send> Job for Work<W, T> {
    fn is_abandoned(&self) -> bool {
        self.result.is_closed()
    }

    fn run(self: Box<Self>) {
        // A panic drops the sender, and that is how whoever waits learns of it.
        if let Ok(value) = catch_unwind(AssertUnwindSafe(self.work)) {
            let _ = self.result.send(value);
        }
    }
}

/// Work without a result.
struct Detached<W>(W);

impl<W: FnOnce() + Send> Job for Detached<W> {
    fn is_abandoned(&self) -> bool {
        false
    }

    fn run(self: Box<Self>) {
        // The panic hook has told of a panic; nobody waits.
        let _ = catch_unwind(AssertUnwindSafe(self.0));
    }
}

impl WorkerPool {
    /// A pool without threads and without work.
    pub const fn new(limits: PoolLimits) -> WorkerPool {
        WorkerPool {
            limits,
            prepare_thread: || {},
            state: Mutex::new(State {
                queue: VecDeque::new(),
                threads: 0,
                busy: 0,
            }),
            more: Condvar::new(),
        }
    }

    /// The same pool, whose threads call `prepare` before their first work: for a priority, or for
    /// memory that the work needs.
    pub const fn preparing_threads(mut self, prepare: fn()) -> WorkerPool {
        self.prepare_thread = prepare;
        self
    }

    /// The limits.
    pub fn limits(&self) -> &PoolLimits {
        &self.limits
    }

    /// Has a thread do `work`, and gives what comes of it: `None` when the work panicked. Work
    /// whose future is dropped before a thread took it is not done. Never waits.
    ///
    /// # Errors
    /// When as much waits as may, or there is no thread.
    pub fn submit<T, W>(
        &'static self,
        work: W,
    ) -> Result<impl Future<Output = Option<T>> + use<T, W>, PoolRefusal>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (result, receiver) = oneshot::channel();
        self.push(Box::new(Work { work, result }))?;
        Ok(async move { receiver.await.ok() })
    }

    /// Has a thread do `work`, of which nobody waits for a result. Never waits.
    ///
    /// # Errors
    /// When as much waits as may, or there is no thread.
    pub fn spawn(&'static self, work: impl FnOnce() + Send + 'static) -> Result<(), PoolRefusal> {
        self.push(Box::new(Detached(work)))
    }

    /// How many pieces of work wait for a thread.
    pub fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    fn push(&'static self, job: Box<dyn Job>) -> Result<(), PoolRefusal> {
        let mut state = self.lock();
        let capacity = self.limits.threads_max + self.limits.queued_max;
        if state.queue.len() + state.busy >= capacity {
            // What nobody waits for any more leaves its place to others.
            state.queue.retain(|job| !job.is_abandoned());
        }
        let waiting = state.queue.len() + state.busy;
        if waiting >= capacity {
            return Err(PoolRefusal::Full);
        }
        if waiting >= state.threads && state.threads < self.limits.threads_max {
            match self.start_thread() {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(PoolRefusal::NoThread(error)),
                Err(_) => {}
            }
        }
        state.queue.push_back(job);
        self.more.notify_one();
        Ok(())
    }

    fn start_thread(&'static self) -> io::Result<()> {
        let name = self.limits.name.to_owned();
        thread::Builder::new()
            .name(name)
            .spawn(|| self.take_jobs())?;
        Ok(())
    }

    fn take_jobs(&self) {
        // A lane has started this thread, and that lane's CPU is what the work shall leave alone.
        let _ = CpuSet::of_main_thread().and_then(|cpus| cpus.pin_this_thread());
        (self.prepare_thread)();
        let mut state = self.lock();
        loop {
            let Some(job) = state.queue.pop_front() else {
                state = self
                    .more
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.busy += 1;
            drop(state);
            if !job.is_abandoned() {
                job.run();
            }
            state = self.lock();
            state.busy -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
