//! Background work of a serving process: all work that does not run on lanes.
//!
//! There are three kinds, each with its own limit:
//!
//! - **services** of a plan are periodic and wait most of the time: name lookups, active checks,
//!   the management of a cache's folder. All of them share one thread, on which no call may block.
//! - **blocking work** of requests and services runs on a small pool ([`run_blocking`]). The end of
//!   the process does not wait for it, except for **last work** ([`run_last`]).
//! - **commands** of the control socket have threads of their own ([`run_command`]).
//!
//! A plan registers its services while it is built. They start when the plan comes into force,
//! never before: a plan that is only checked has no effect.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, LocalSet};
use turnpike_lane::pool::{PoolLimits, PoolRefusal, WorkerPool};

#[cfg(test)]
mod tests;

/// The stack of the services' thread in bytes; no recursion on it depends on the input.
const STACK_BYTES: usize = 512 * 1024;

/// Blocking work reads and removes files, or scans all keys of a cache. More threads would wait for
/// the same disks; a longer queue would exceed the patience of clients.
static BLOCKING: WorkerPool = WorkerPool::new(PoolLimits {
    name: "blocking",
    threads_max: 16,
    queued_max: 4096,
});

/// Concurrent commands. Further ones are refused, not queued: an operator would wait behind another
/// one's long purge.
static COMMANDS: WorkerPool = WorkerPool::new(PoolLimits {
    name: "command",
    threads_max: 8,
    queued_max: 0,
});

/// The most time that the end of a process waits for what its services complete and for last work:
/// a second or so for what is under way, and as much for what follows. Whoever stops a server waits
/// for it.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// The last work of this process that has not ended.
static LAST: LastWork = LastWork {
    pending: Mutex::new(0),
    none: Condvar::new(),
};

/// A running service.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Work of a plan that no request starts. It must not own the plan.
pub trait Service: Send + Sync {
    /// The work, which may never end. It runs on the services' thread and must not block; dropping
    /// it at a wait stops it.
    fn run(self: Arc<Self>) -> Running;

    /// Prepares for the service before any lane uses the plan. The main thread calls it once for
    /// each plan that comes into force.
    fn prepare(&self) {}

    /// Tells the service that others take care of its object from now on: a plan without the
    /// service comes into force, or the process begins to quit. The service may still run. If that
    /// plan cannot be used after all, [`Service::prepare`] is called again.
    fn leave(&self) {}

    /// Completes what waits, once, when the process ends; the lanes have ended before. It may block
    /// until the given time, after which the process no longer waits for it.
    fn finish(&self, _until: Instant) {}

    /// The lifetime of the service.
    fn lifetime(&self) -> Lifetime {
        Lifetime::InForce
    }

    /// A number that two services share if they serve the same object: the object's address. If the
    /// service already runs, the next plan does not start it again.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The lifetime of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until another plan comes into force.
    InForce,
    /// Until no request uses a plan with this service any more.
    InUse,
}

/// The services of a serving process. Their thread starts with the first one and ends when this is
/// dropped.
#[derive(Default)]
pub struct Background {
    /// The orders for the services' thread. The queue needs no limit: a plan sends two orders in
    /// its life, and the process one at its end.
    orders: Mutex<Option<UnboundedSender<Order>>>,
}

enum Order {
    Start(u64, Vec<Arc<dyn Service>>),
    Stop(u64),
    /// Stops all services and sends them back.
    Finish(Sender<Vec<Arc<dyn Service>>>),
}

impl Background {
    /// Starts the services of a plan that comes into force, with its generation. Those of other
    /// plans continue according to their lifetimes.
    ///
    /// # Errors
    /// There is no thread for them. Then none of them runs.
    pub fn start(&self, generation: u64, services: &[Arc<dyn Service>]) -> io::Result<()> {
        services.iter().for_each(|service| service.prepare());
        let mut orders = self.lock();
        if orders.is_none() && !services.is_empty() {
            *orders = Some(start_thread()?);
        }
        if let Some(orders) = &*orders {
            // The thread ends only when this sender is dropped.
            let _ = orders.send(Order::Start(generation, services.to_vec()));
        }
        Ok(())
    }

    /// Stops the services of this plan that no other plan has. Called when the plan is released,
    /// from any thread.
    pub fn stop(&self, generation: u64) {
        if let Some(orders) = &*self.lock() {
            // As above.
            let _ = orders.send(Order::Stop(generation));
        }
    }

    /// Stops all services, lets each complete what waits, and waits for last work. Called once,
    /// when the process ends; it blocks for [`FINISH_TIMEOUT`] at most.
    pub fn finish(&self) {
        self.finish_until(Instant::now() + FINISH_TIMEOUT);
    }

    fn finish_until(&self, until: Instant) {
        if let Some(orders) = self.lock().take() {
            let (sender, stopped) = channel();
            // As above.
            let _ = orders.send(Order::Finish(sender));
            let left = until.saturating_duration_since(Instant::now());
            for service in stopped.recv_timeout(left).unwrap_or_default() {
                // Without a thread it cannot be waited for, and nothing of it is completed.
                let _ = run_last(move || service.finish(until));
            }
        }
        LAST.wait(until);
    }

    fn lock(&self) -> MutexGuard<'_, Option<UnboundedSender<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs blocking work on another thread, and returns its result: `None` if it panicked. Never waits
/// itself.
///
/// # Errors
/// The queue is full, or there is no thread.
pub fn run_blocking<T, W>(
    work: W,
) -> Result<impl Future<Output = Option<T>> + use<T, W>, PoolRefusal>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    BLOCKING.submit(work)
}

/// Runs blocking work on another thread, whoever asked for it. The end of the process waits for it,
/// but not long. Never waits itself.
///
/// # Errors
/// The queue is full, or there is no thread; then the work is dropped.
pub fn run_last(work: impl FnOnce() + Send + 'static) -> Result<(), PoolRefusal> {
    let pending = LAST.begin();
    BLOCKING.spawn(move || {
        // Dropped in any case, also with work that panics or is refused.
        let _pending = pending;
        work();
    })
}

/// Last work, and whoever waits for its end.
struct LastWork {
    pending: Mutex<usize>,
    none: Condvar,
}

impl LastWork {
    fn begin(&'static self) -> PendingWork {
        *self.lock() += 1;
        PendingWork(self)
    }

    /// Waits until no work is pending.
    fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        // After that time nobody waits, and what is pending ends with the process.
        let _ = self
            .none
            .wait_timeout_while(self.lock(), left, |pending| *pending > 0);
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts its work as pending until it is dropped.
struct PendingWork(&'static LastWork);

impl Drop for PendingWork {
    fn drop(&mut self) {
        let mut pending = self.0.lock();
        *pending -= 1;
        if *pending == 0 {
            self.0.none.notify_all();
        }
    }
}

/// Runs an operator's command on another thread.
///
/// # Errors
/// Too many commands are running, or there is no thread.
pub fn run_command(work: impl FnOnce() + Send + 'static) -> Result<(), PoolRefusal> {
    COMMANDS.spawn(work)
}

fn start_thread() -> io::Result<UnboundedSender<Order>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (sender, receiver) = unbounded_channel();
    thread::Builder::new()
        .name("background".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || LocalSet::new().block_on(&runtime, obey(receiver)))?;
    Ok(sender)
}

async fn obey(mut orders: UnboundedReceiver<Order>) {
    let mut running: HashMap<usize, Entry> = HashMap::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Start(generation, services) => start(&mut running, generation, services),
            Order::Stop(generation) => running.retain(|_, entry| {
                entry.generations.retain(|known| *known != generation);
                !entry.generations.is_empty()
            }),
            Order::Finish(sender) => {
                let stopped = running.drain().map(|(_, entry)| entry.service.clone());
                // Whoever finishes waits for them.
                let _ = sender.send(stopped.collect());
            }
        }
    }
}

/// A started service, and the plans that have it. Dropping it stops the service.
struct Entry {
    service: Arc<dyn Service>,
    task: AbortHandle,
    generations: Vec<u64>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn start(running: &mut HashMap<usize, Entry>, generation: u64, services: Vec<Arc<dyn Service>>) {
    let wanted: Vec<usize> = services.iter().map(|service| service.identity()).collect();
    running.retain(|identity, entry| {
        entry.service.lifetime() == Lifetime::InUse || wanted.contains(identity)
    });
    for (identity, service) in wanted.into_iter().zip(services) {
        let entry = running.entry(identity).or_insert_with(|| Entry {
            task: tokio::task::spawn_local(service.clone().run()).abort_handle(),
            service,
            generations: Vec::new(),
        });
        if !entry.generations.contains(&generation) {
            entry.generations.push(generation);
        }
    }
}
