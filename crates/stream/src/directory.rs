//! Which lane has a flow of UDP: a datagram may come by a gate of another one, when the number of
//! lanes has changed, when a lane is rescued, or when the kernel's choice among gates has.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnpike_lane::gate::ListenAddress;

use crate::flow::{FlowKey, Origin};

/// Parts of the directory, each with a lock of its own, so that lanes seldom meet at one.
const SHARDS: usize = 64;

/// Datagrams that wait for a lane to take them over: some rounds of what a busy gate gives. More
/// are lost, as in a socket whose buffer is full.
const STRAYS_MAX: usize = 1024;

/// The flows of all lanes of a process.
pub struct FlowDirectory {
    shards: [Mutex<HashMap<FlowKey, Arc<Inbox>>>; SHARDS],
    hasher: RandomState,
}

/// Where a lane is given datagrams that came to another one.
pub(crate) struct Inbox {
    strays: Mutex<Strays>,
    /// Wakes the lane.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Strays {
    queue: VecDeque<Stray>,
    /// The lane has ended.
    closed: bool,
}

/// A datagram that came to another lane than that of its flow.
pub(crate) struct Stray {
    /// The address that it came by.
    pub(crate) address: ListenAddress,
    pub(crate) origin: Origin,
    pub(crate) bytes: Vec<u8>,
}

impl Default for FlowDirectory {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
        }
    }
}

impl FlowDirectory {
    /// Notes that a flow is the lane's with this inbox. Returns the inbox of the lane that has it
    /// already, where that is another one which still runs.
    pub(crate) fn claim(&self, key: FlowKey, inbox: &Arc<Inbox>) -> Option<Arc<Inbox>> {
        let mut shard = self.shard(key);
        if let Some(owner) = shard.get(&key)
            && !Arc::ptr_eq(owner, inbox)
            && !owner.strays().closed
        {
            return Some(Arc::clone(owner));
        }
        shard.insert(key, Arc::clone(inbox));
        None
    }

    /// Forgets a flow of the lane with this inbox.
    pub(crate) fn release(&self, key: FlowKey, inbox: &Arc<Inbox>) {
        let mut shard = self.shard(key);
        let is_own = |owner: &Arc<Inbox>| Arc::ptr_eq(owner, inbox);
        if shard.get(&key).is_some_and(is_own) {
            shard.remove(&key);
        }
    }

    fn shard(&self, key: FlowKey) -> MutexGuard<'_, HashMap<FlowKey, Arc<Inbox>>> {
        let place = self.hasher.hash_one(key) as usize % SHARDS;
        let shard = self.shards[place].lock();
        shard.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    /// An empty inbox; `wake` is called when something is put into it.
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            strays: Mutex::default(),
            wake: Box::new(wake),
        }
    }

    /// Puts a datagram in. It is lost where too many wait, and where the lane has just ended.
    pub(crate) fn put(&self, stray: Stray) {
        let mut strays = self.strays();
        if strays.closed || strays.queue.len() >= STRAYS_MAX {
            return;
        }
        strays.queue.push_back(stray);
        drop(strays);
        (self.wake)();
    }

    /// Takes everything out.
    pub(crate) fn take(&self) -> VecDeque<Stray> {
        std::mem::take(&mut self.strays().queue)
    }

    /// Takes nothing any more.
    pub(crate) fn close(&self) {
        *self.strays() = Strays {
            closed: true,
            ..Strays::default()
        };
    }

    fn strays(&self) -> MutexGuard<'_, Strays> {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
