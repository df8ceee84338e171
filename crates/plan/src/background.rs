//! Background work of a serving process: all that runs beside the lanes.
//!
//! There are three kinds, each with its own limit:
//!
//! - **services** of a plan go by time and wait most of the time: lookups of names, active checks,
//!   the care of a cache's folder. All of them share one thread, on which nothing may block.
//! - **blocking work** of requests and services runs on a small pool ([`run_blocking`]).
//! - **commands** of the control socket have threads of their own ([`run_command`]).
//!
//! A plan names its services while it is built. They start when the plan is put in force, never
//! before: a plan that is only checked has no effect.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, LocalSet};
use turnpike_lane::pool::{PoolLimits, PoolRefusal, WorkerPool};

#[cfg(test)]
mod tests;

/// Stack of the services' thread in bytes; nothing on it grows with the input.
const STACK_BYTES: usize = 512 * 1024;

/// Blocking work reads and removes files, or looks over all keys of a cache. More threads would
/// wait for the same disks; more work than this waits longer than any client does.
static BLOCKING: WorkerPool = WorkerPool::new(PoolLimits {
    name: "blocking",
    threads_max: 16,
    queued_max: 4096,
});

/// Commands that run at a time. More are refused, not queued: an operator would wait in vain
/// behind another one's long purge.
static COMMANDS: WorkerPool = WorkerPool::new(PoolLimits {
    name: "command",
    threads_max: 8,
    queued_max: 0,
});

/// A service as it runs.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Work of a plan that no request starts. It must not hold the plan.
pub trait Service: Send + Sync {
    /// The work, which may go on for ever. It runs on the services' thread and must not block; it
    /// is dropped where it waits when it has to stop.
    fn run(self: Arc<Self>) -> Running;

    /// What must have happened before a lane takes the plan up. Called by the main thread, once
    /// for each plan put in force.
    fn prepare(&self) {}

    /// How long the service runs.
    fn lifetime(&self) -> Lifetime {
        Lifetime::InForce
    }

    /// A number that two services share if they care for the same thing: the address of that
    /// thing. One that runs already is not started again by the next plan.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// How long a service of a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until another plan is put in force.
    InForce,
    /// Until no request uses a plan any more that has this service.
    InUse,
}

/// The services of a serving process. Their thread starts with the first one and ends when this
/// is dropped.
#[derive(Default)]
pub struct Background {
    /// The plan in force, and the orders of the services' thread. The queue needs no limit: a plan
    /// sends two orders in its life.
    orders: Mutex<Option<UnboundedSender<Order>>>,
}

enum Order {
    Start(u64, Vec<Arc<dyn Service>>),
    Stop(u64),
}

impl Background {
    /// Puts the services of a plan in force, under the plan's generation. Those of other plans go
    /// on as their lifetimes say.
    ///
    /// # Errors
    /// When there is no thread for them. Then none of them runs.
    pub fn start(&self, generation: u64, services: &[Arc<dyn Service>]) -> io::Result<()> {
        services.iter().for_each(|service| service.prepare());
        let mut orders = self.lock();
        if orders.is_none() && !services.is_empty() {
            *orders = Some(start_thread()?);
        }
        if let Some(orders) = &*orders {
            // The thread ends with this sender only.
            let _ = orders.send(Order::Start(generation, services.to_vec()));
        }
        Ok(())
    }

    /// Stops what only this plan has. Called when the plan is released, from any thread.
    pub fn stop(&self, generation: u64) {
        if let Some(orders) = &*self.lock() {
            // As above.
            let _ = orders.send(Order::Stop(generation));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<UnboundedSender<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has another thread do work that blocks, and gives what comes of it: `None` when it panicked.
/// Never waits itself.
///
/// # Errors
/// When too much waits already, or there is no thread.
pub fn run_blocking<T, W>(
    work: W,
) -> Result<impl Future<Output = Option<T>> + use<T, W>, PoolRefusal>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    BLOCKING.submit(work)
}

/// Has another thread carry out a command of an operator.
///
/// # Errors
/// When too many run already, or there is no thread.
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
        }
    }
}

/// A service that was started, and the plans that have it. Dropped, it stops.
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
