//! Threads for work that would block a lane: slow password hashes, expensive patterns.
//!
//! A pool has a few threads and a short queue; its owner sets both limits. Work beyond them is
//! refused at once, so that a source of too much work delays no other. The threads start with the
//! first work. The pool does not know the kind of work.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::{fmt, io, thread};

use tokio::sync::oneshot;

use crate::affinity::CpuSet;
#[cfg(feature = "simulation")]
use crate::sys::simulation;

#[cfg(test)]
mod tests;

/// A pool; its users make it `static`.
pub struct WorkerPool {
    limits: PoolLimits,
    /// The preparation of each thread before its first work.
    prepare_thread: fn(),
    state: Mutex<State>,
    more: Condvar,
}

/// The limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The name of its threads, 15 bytes at most: the kernel cuts longer ones.
    pub name: &'static str,
    /// Most threads.
    pub threads_max: usize,
    /// Most jobs that wait for a thread.
    pub queued_max: usize,
}

/// Why a job was refused.
#[derive(Debug)]
pub enum PoolRefusal {
    /// The queue is full.
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
    /// Whether the result is no longer wanted.
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
        // A panic drops the sender, and the receiver notices that.
        if let Ok(value) = catch_unwind(AssertUnwindSafe(self.work)) {
            let _ = self.result.send(value);
        }
    }
}

/// A job without a result.
struct Detached<W>(W);

impl<W: FnOnce() + Send> Job for Detached<W> {
    fn is_abandoned(&self) -> bool {
        false
    }

    fn run(self: Box<Self>) {
        // The panic hook has logged a panic; no caller waits.
        let _ = catch_unwind(AssertUnwindSafe(self.0));
    }
}

impl WorkerPool {
    /// A pool without threads and jobs.
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

    /// The same pool, but its threads call `prepare` before their first job: to set a priority, or
    /// to allocate memory that jobs need.
    pub const fn preparing_threads(mut self, prepare: fn()) -> WorkerPool {
        self.prepare_thread = prepare;
        self
    }

    /// The limits.
    pub fn limits(&self) -> &PoolLimits {
        &self.limits
    }

    /// Runs `work` on a thread, and returns its result: `None` if it panicked. A job whose future
    /// is dropped before a thread took it is not run. Never waits.
    ///
    /// # Errors
    /// The queue is full, or there is no thread.
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

    /// Runs `work` on a thread without a result. Never waits.
    ///
    /// # Errors
    /// The queue is full, or there is no thread.
    pub fn spawn(&'static self, work: impl FnOnce() + Send + 'static) -> Result<(), PoolRefusal> {
        self.push(Box::new(Detached(work)))
    }

    /// The number of jobs that wait for a thread.
    pub fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    fn push(&'static self, job: Box<dyn Job>) -> Result<(), PoolRefusal> {
        // A simulated lane has no other threads, and waits for none.
        #[cfg(feature = "simulation")]
        if simulation::is_on() {
            job.run();
            return Ok(());
        }
        let mut state = self.lock();
        let capacity = self.limits.threads_max + self.limits.queued_max;
        if state.queue.len() + state.busy >= capacity {
            // Abandoned jobs leave their place in the queue to others.
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
        // A lane may have started this thread, and the job must not use that lane's CPU.
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
