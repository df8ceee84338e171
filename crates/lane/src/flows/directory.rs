//! The directory of the flows of all lanes of a process, and of those that another process has.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::succession::{self, FlowLink};
use super::{Arrival, FlowKey, ForwardedDatagram};
use crate::steering::{LaneBoard, QuicRules};

/// Parts of the directory, each with a lock of its own, so that lanes seldom meet at one.
const SHARDS: usize = 64;

/// Datagrams that wait for a lane to take them over: some rounds of what a busy gate gives. More
/// are lost, as in a socket whose buffer is full.
const DATAGRAMS_MAX: usize = 1024;

/// The flows of all lanes of a process, and those that another process has whose gates are ours.
pub struct FlowDirectory {
    shards: [Mutex<HashMap<FlowKey, FlowOwner>>; SHARDS],
    hasher: RandomState,
    /// Processes that come after this one.
    successors: Mutex<Vec<Arc<FlowLink>>>,
    /// This process reads the gates no more.
    is_draining: AtomicBool,
    /// Called when no other process needs this one.
    at_end: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Where the steering program reads connection IDs' rules, and the last ones.
    steering: Mutex<(Option<Arc<LaneBoard>>, Option<QuicRules>)>,
}

/// The owner of a flow.
enum FlowOwner {
    Lane(Arc<Inbox>),
    /// A process before this one, and the address that its last datagram came from.
    Process(Arc<FlowLink>, Option<FlowRequester>),
}

impl FlowOwner {
    /// Whether it is the lane with this inbox.
    fn is_lane(&self, inbox: &Arc<Inbox>) -> bool {
        matches!(self, Self::Lane(own) if Arc::ptr_eq(own, inbox))
    }

    /// Whether it is the process at the other end of this link.
    fn is_process(&self, link: &Arc<FlowLink>) -> bool {
        matches!(self, Self::Process(own, _) if Arc::ptr_eq(own, link))
    }
}

/// The one that is given a datagram again whose flow has ended elsewhere.
enum FlowRequester {
    /// A lane that has read it from this gate.
    Lane(Arc<Inbox>, Arc<OwnedFd>),
    /// The process after this one.
    Process(Arc<FlowLink>),
}

/// The owner of a flow that a lane does not have.
pub(super) enum Elsewhere {
    Lane(Arc<Inbox>),
    Process(Arc<FlowLink>),
}

impl Elsewhere {
    /// Gives it a datagram; the datagram comes back where that lane or process is there no more.
    pub(super) fn put(&self, datagram: ForwardedDatagram) -> Result<(), Box<ForwardedDatagram>> {
        match self {
            Self::Lane(inbox) => match inbox.put(datagram) {
                Put::Taken | Put::Lost => Ok(()),
                Put::Closed(datagram) => Err(datagram),
            },
            Self::Process(link) if link.pass_on(&datagram) => Ok(()),
            Self::Process(_) => Err(Box::new(datagram)),
        }
    }
}

/// What became of a datagram that was put into an inbox.
pub(super) enum Put {
    Taken,
    /// Too many wait, as in a socket whose buffer is full.
    Lost,
    /// The lane has ended.
    Closed(Box<ForwardedDatagram>),
}

/// Where a lane is given datagrams that came to another one.
pub(super) struct Inbox {
    datagrams: Mutex<Datagrams>,
    /// There is something in it: the lane looks in every turn, mostly in vain.
    is_filled: AtomicBool,
    /// Wakes the lane.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Datagrams {
    queue: VecDeque<ForwardedDatagram>,
    /// The lane has ended.
    closed: bool,
}

impl Default for FlowDirectory {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            successors: Mutex::default(),
            is_draining: AtomicBool::new(false),
            at_end: Mutex::default(),
            steering: Mutex::default(),
        }
    }
}

impl FlowDirectory {
    /// Tells the steering program that reads this board how connection IDs are read, now and later.
    pub fn set_board(&self, board: &Arc<LaneBoard>) {
        let mut steering = locked(&self.steering);
        steering.0 = Some(Arc::clone(board));
        if let Some(rules) = &steering.1 {
            board.set_quic(rules);
        }
    }

    /// Tells the steering program how connection IDs are read.
    pub(super) fn steer(&self, rules: QuicRules) {
        let mut steering = locked(&self.steering);
        steering.1 = Some(rules);
        if let Some(board) = &steering.0 {
            board.set_quic(&rules);
        }
    }

    /// Notes that a flow is the lane's with this inbox. Returns who has it already, where that is
    /// another lane that still runs, or another process; that one gives a datagram which came by
    /// this gate back when the flow has ended.
    pub(super) fn claim(
        &self,
        key: FlowKey,
        inbox: &Arc<Inbox>,
        gate: &Arc<OwnedFd>,
    ) -> Option<Elsewhere> {
        let mut shard = self.shard(key);
        match shard.get_mut(&key) {
            Some(FlowOwner::Lane(owner))
                if !Arc::ptr_eq(owner, inbox) && !owner.datagrams().closed =>
            {
                return Some(Elsewhere::Lane(Arc::clone(owner)));
            }
            Some(FlowOwner::Process(link, asker)) => {
                *asker = Some(FlowRequester::Lane(Arc::clone(inbox), Arc::clone(gate)));
                return Some(Elsewhere::Process(Arc::clone(link)));
            }
            Some(FlowOwner::Lane(_)) | None => {}
        }
        shard.insert(key, FlowOwner::Lane(Arc::clone(inbox)));
        None
    }

    /// Forgets a flow of the lane with this inbox.
    pub(super) fn release(&self, key: FlowKey, inbox: &Arc<Inbox>) {
        let mut shard = self.shard(key);
        if shard.get(&key).is_some_and(|owner| owner.is_lane(inbox)) {
            shard.remove(&key);
        }
        drop(shard);
        if self.is_draining.load(Ordering::Relaxed) {
            self.finish_if_empty();
        }
    }

    /// How many flows it knows.
    #[cfg(feature = "simulation")]
    pub fn flows(&self) -> usize {
        self.shards.iter().map(|shard| locked(shard).len()).sum()
    }

    /// Each flow stands in the part in which it is looked for.
    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            for (place, shard) in self.shards.iter().enumerate() {
                for key in locked(shard).keys() {
                    assert_eq!(self.hasher.hash_one(key) as usize % SHARDS, place);
                }
            }
        }
    }

    fn shard(&self, key: FlowKey) -> MutexGuard<'_, HashMap<FlowKey, FlowOwner>> {
        let place = self.hasher.hash_one(key) as usize % SHARDS;
        locked(&self.shards[place])
    }
}

/// The side of a process that another one follows.
impl FlowDirectory {
    /// Goes on with this process's flows when another process, at the other end of the link, reads
    /// the gates.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn add_successor(self: &Arc<Self>, link: OwnedFd) -> io::Result<()> {
        let link = succession::listen(self, link, || {})?;
        locked(&self.successors).push(link);
        Ok(())
    }

    /// Whether another process is to follow.
    pub fn has_successor(&self) -> bool {
        !locked(&self.successors).is_empty()
    }

    /// No lane reads a gate any more: successors may, and are told which flows stay here. A thread
    /// does so, since one of them may be slow.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn hand_over(self: &Arc<Self>) -> io::Result<()> {
        self.is_draining.store(true, Ordering::Relaxed);
        let links = locked(&self.successors).clone();
        if links.is_empty() {
            return Ok(());
        }
        self.check_invariants();
        let directory = Arc::clone(self);
        let builder = thread::Builder::new().name("flows".to_owned());
        builder.spawn(move || {
            let mut keys = Vec::new();
            for shard in &directory.shards {
                keys.extend(locked(shard).keys());
            }
            for link in links {
                // One that is gone is noticed by its own thread.
                let _ = link.hand_over(&keys);
            }
            directory.finish_if_empty();
        })?;
        Ok(())
    }

    /// Lanes read the gates from now on.
    pub fn take_up(&self) {
        self.is_draining.store(false, Ordering::Relaxed);
    }

    /// Calls `end` when no other process needs this one: at once, or when the link to the last one
    /// ends.
    pub fn at_end(&self, end: impl FnOnce() + Send + 'static) {
        *locked(&self.at_end) = Some(Box::new(end));
        self.end_if_free();
    }

    fn end_if_free(&self) {
        if self.has_successor() {
            return;
        }
        let end = locked(&self.at_end).take();
        if let Some(end) = end {
            end();
        }
    }

    /// A successor need not ask any more where no flow is left here.
    fn finish_if_empty(&self) {
        let is_empty = || self.shards.iter().all(|shard| locked(shard).is_empty());
        if self.has_successor() && is_empty() {
            let successors = locked(&self.successors);
            successors.iter().for_each(FlowLink::finish);
        }
    }

    /// Gives a successor's datagram to the lane that has its flow, or back.
    pub(super) fn deliver(&self, datagram: ForwardedDatagram, from: &Arc<FlowLink>) {
        let mut shard = self.shard(datagram.key);
        let owner = match shard.get_mut(&datagram.key) {
            Some(FlowOwner::Lane(inbox)) if !inbox.datagrams().closed => {
                Elsewhere::Lane(Arc::clone(inbox))
            }
            Some(FlowOwner::Process(link, asker)) => {
                *asker = Some(FlowRequester::Process(Arc::clone(from)));
                Elsewhere::Process(Arc::clone(link))
            }
            Some(FlowOwner::Lane(_)) | None => {
                drop(shard);
                from.give_back(&datagram);
                return;
            }
        };
        drop(shard);
        if let Err(datagram) = owner.put(datagram) {
            // The flow has ended meanwhile, and its lane or process with it.
            from.give_back(&datagram);
        }
    }
}

/// The side of a process that follows another one.
impl FlowDirectory {
    /// Leaves the flows to the process before that it has. `free` is called when that one reads the
    /// gates no more.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn follow(
        self: &Arc<Self>,
        link: OwnedFd,
        free: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        succession::listen(self, link, free).map(|_| ())
    }

    /// Notes a flow of the process at the other end, unless it has begun anew here.
    pub(super) fn add_held(&self, key: FlowKey, link: &Arc<FlowLink>) {
        let mut shard = self.shard(key);
        let is_ours = |owner: &FlowOwner| match owner {
            FlowOwner::Lane(inbox) => !inbox.datagrams().closed,
            FlowOwner::Process(..) => false,
        };
        if shard.get(&key).is_some_and(is_ours) {
            return;
        }
        shard.insert(key, FlowOwner::Process(Arc::clone(link), None));
    }

    /// A flow of the process at the other end has ended: its datagram begins another one. Others
    /// may be on their way behind it, for the same.
    pub(super) fn returned(&self, mut datagram: ForwardedDatagram, link: &Arc<FlowLink>) {
        let key = datagram.key;
        let mut shard = self.shard(key);
        let inbox = match shard.get(&key) {
            Some(FlowOwner::Lane(inbox)) => Arc::clone(inbox),
            Some(FlowOwner::Process(own, Some(asker))) if Arc::ptr_eq(own, link) => match asker {
                FlowRequester::Lane(inbox, gate) => {
                    datagram.arrival = Arrival::Gate(Arc::clone(gate));
                    Arc::clone(inbox)
                }
                FlowRequester::Process(asker) => {
                    let asker = Arc::clone(asker);
                    drop(shard);
                    return asker.give_back(&datagram);
                }
            },
            _ => return,
        };
        // At once: the lane takes the datagram, and claims the flow, only in its next turn.
        shard.insert(key, FlowOwner::Lane(Arc::clone(&inbox)));
        drop(shard);
        let begins = matches!(datagram.arrival, Arrival::Gate(_));
        if !matches!(inbox.put(datagram), Put::Taken) && begins {
            self.release(key, &inbox);
        }
    }

    /// A flow is not that process's any more, which is there no more.
    pub(super) fn forget(&self, key: FlowKey, link: &Arc<FlowLink>) {
        let mut shard = self.shard(key);
        if shard.get(&key).is_some_and(|owner| owner.is_process(link)) {
            shard.remove(&key);
        }
    }

    /// The process at the other end has no flows any more.
    pub(super) fn link_ended(&self, link: &Arc<FlowLink>) {
        locked(&self.successors).retain(|other| !Arc::ptr_eq(other, link));
        for shard in &self.shards {
            locked(shard).retain(|_, owner| !owner.is_process(link));
        }
        if self.is_draining.load(Ordering::Relaxed) {
            self.finish_if_empty();
        }
        self.end_if_free();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    /// An empty inbox; `wake` is called when something is put into it.
    pub(super) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            datagrams: Mutex::default(),
            is_filled: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Puts a datagram in, and says what became of it.
    pub(super) fn put(&self, datagram: ForwardedDatagram) -> Put {
        let mut datagrams = self.datagrams();
        if datagrams.closed {
            return Put::Closed(Box::new(datagram));
        }
        if datagrams.queue.len() >= DATAGRAMS_MAX {
            return Put::Lost;
        }
        datagrams.queue.push_back(datagram);
        self.is_filled.store(true, Ordering::Relaxed);
        drop(datagrams);
        (self.wake)();
        Put::Taken
    }

    /// Whether there may be something in it. What is put in later wakes the lane.
    pub(super) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Relaxed)
    }

    /// Takes everything out.
    pub(super) fn take(&self) -> VecDeque<ForwardedDatagram> {
        let mut datagrams = self.datagrams();
        self.is_filled.store(false, Ordering::Relaxed);
        std::mem::take(&mut datagrams.queue)
    }

    /// Takes nothing any more, unless something is in it. Returns whether it is closed.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut datagrams = self.datagrams();
        datagrams.closed |= datagrams.queue.is_empty();
        datagrams.closed
    }

    /// Takes nothing any more.
    pub(super) fn close(&self) {
        *self.datagrams() = Datagrams {
            closed: true,
            ..Datagrams::default()
        };
    }

    fn datagrams(&self) -> MutexGuard<'_, Datagrams> {
        locked(&self.datagrams)
    }
}

#[cfg(test)]
mod tests;
