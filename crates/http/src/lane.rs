//! What a lane has at hand while it serves: its clock and counters, the plan with the lane's own
//! state for it, and a pool of exchanges.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tokio::sync::Notify;

use turnpike_lane::clock::Clock;
use turnpike_lane::event_loop::WatchedSockets;
use turnpike_lane::handshakes::Handshakes;
use turnpike_lane::random::Random;
use turnpike_lane::sys::simulation::{self, Fault};

use crate::counters::{AllCounters, Doing, HttpCounters};
use crate::exchange::Exchange;
use crate::h1::input::InputPool;
use crate::plan::resolved::Plan;
use crate::requester::{ConnectionFacts, Requester};
use crate::response::LocalFuture;

pub use turnpike_plan::lane::{LaneSlot, LaneState, LaneStateMaker};

/// Bytes of memory that exchanges kept for use again may hold together: some hundreds of the usual
/// ones. One serves the fast path; many are in use at once where many answers are awaited.
const POOL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes that a buffer of a pooled exchange may keep; a larger one is given back to the allocator.
const KEPT_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// A lane's own things, whatever the plan.
pub struct LaneShared {
    /// Number of the lane, from 0.
    pub index: usize,
    /// Time, read once a turn.
    pub clock: Rc<Clock>,
    /// What happened on this lane; readable from everywhere.
    pub counters: Arc<HttpCounters>,
    /// Counters of all lanes, for the pages that sum them.
    pub all_counters: Arc<AllCounters>,
    /// Work that no client waits for.
    pub(crate) background: Background,
    /// TLS handshakes of this turn.
    pub handshakes: Rc<Handshakes>,
    /// Where sockets of upstream servers are watched; not there before the first plan.
    pub watched_sockets: OnceCell<WatchedSockets>,
    /// What the lane has begun last; readable from everywhere.
    pub doing: Arc<Doing>,
    /// Requests answered in this round of the loop that also began in it.
    pub(crate) round_answers: Cell<u64>,
    /// Whether the lane finishes what was begun: answers say that the connection is closed.
    pub ending: Cell<bool>,
    /// Whether the lane goes, since another plan has fewer.
    pub(crate) leaving: Cell<bool>,
    /// The plan in force, which exchanges of the pool hold.
    plan: RefCell<Weak<LanePlan>>,
    pool: RefCell<ExchangePool>,
    /// Buffers that connections read into.
    pub(crate) inputs: Rc<InputPool>,
    random: Random,
    /// See [`LaneShared::take_scratch`].
    scratch: Cell<Vec<u8>>,
    /// The next connection number, and the end of the block it is from.
    serials: Cell<(u64, u64)>,
}

/// Exchanges that were used before, those used last at the end.
#[derive(Default)]
struct ExchangePool {
    idle: Vec<IdleExchange>,
    /// What they hold together.
    bytes: usize,
}

struct IdleExchange {
    exchange: Box<Exchange>,
    bytes: usize,
}

impl ExchangePool {
    fn take(&mut self) -> Option<Box<Exchange>> {
        let idle = self.idle.pop()?;
        self.bytes -= idle.bytes;
        Some(idle.exchange)
    }

    /// Keeps one, unless there are enough.
    fn put(&mut self, exchange: Box<Exchange>, bytes: usize) {
        if self.bytes + bytes <= POOL_BYTES_MAX {
            self.bytes += bytes;
            self.idle.push(IdleExchange { exchange, bytes });
        }
    }
}

/// Tasks that no client waits for, until the lane takes them up.
#[derive(Default)]
pub(crate) struct Background {
    pub(crate) waiting: RefCell<Vec<LocalFuture<'static, ()>>>,
    /// The requests that wait and those that run.
    pub(crate) under_way: Cell<usize>,
    /// Answers on streams of connections that clients share among requests.
    pub(crate) streams: RefCell<Vec<LocalFuture<'static, ()>>>,
    /// Wakes the lane, where it waits for driven connections.
    pub(crate) notify: Rc<Notify>,
}

/// A plan of HTTP as one lane holds it.
pub type LanePlan = turnpike_plan::lane::LanePlan<Plan>;

impl LaneShared {
    /// A lane's own things.
    pub fn new(index: usize, all_counters: Arc<AllCounters>) -> Rc<Self> {
        let clock = Rc::new(Clock::new());
        let background = Background::default();
        let seed = clock.now_ms() ^ ((index as u64 + 1) << 32) ^ u64::from(std::process::id());
        Rc::new(Self {
            index,
            counters: all_counters.add_lane(index),
            doing: Arc::default(),
            all_counters,
            clock,
            handshakes: Rc::new(Handshakes::new(background.notify.clone())),
            background,
            watched_sockets: OnceCell::new(),
            round_answers: Cell::new(0),
            ending: Cell::new(false),
            leaving: Cell::new(false),
            plan: RefCell::default(),
            pool: RefCell::default(),
            inputs: Rc::default(),
            random: Random::new(seed),
            scratch: Cell::default(),
            serials: Cell::new((0, 0)),
        })
    }

    /// An exchange for a connection: one that was used before, or a new one.
    pub fn exchange(
        self: &Rc<Self>,
        plan: &Rc<LanePlan>,
        client: &ConnectionFacts,
    ) -> Box<Exchange> {
        match self.pool.borrow_mut().take() {
            Some(mut exchange) => {
                if !Rc::ptr_eq(&exchange.plan, plan) {
                    exchange.plan = plan.clone();
                }
                exchange.client = Requester::new(*client);
                exchange.leave_location();
                exchange
            }
            None => {
                let mut exchange = Exchange::new(self.clone(), plan.clone(), *client);
                exchange.leave_location();
                Box::new(exchange)
            }
        }
    }

    /// Takes an exchange back; not one that would hold a plan from before a reload.
    pub fn recycle(&self, mut exchange: Box<Exchange>) {
        if simulation::is_faulty(Fault::BufferKept) {
            std::mem::forget(exchange);
            return;
        }
        if Rc::as_ptr(&exchange.plan) != self.plan.borrow().as_ptr() {
            return;
        }
        exchange.clear();
        let kept_bytes = exchange.trim_buffers(KEPT_BUFFER_BYTES_MAX);
        let bytes = size_of::<Exchange>() + kept_bytes;
        self.pool.borrow_mut().put(exchange, bytes);
    }

    /// Runs a task that no client waits for on the lane's runtime, from the end of this turn on.
    pub fn run_in_background(&self, task: LocalFuture<'static, ()>) {
        self.background
            .under_way
            .set(self.background.under_way.get() + 1);
        self.background.waiting.borrow_mut().push(task);
        self.background.notify.notify_one();
    }

    /// Runs the answer to a request, of many on a connection, on the lane's runtime.
    pub(crate) fn drive_stream(&self, answer: LocalFuture<'static, ()>) {
        self.background.streams.borrow_mut().push(answer);
        self.background.notify.notify_one();
    }

    /// The plan in force.
    pub(crate) fn plan(&self) -> Option<Rc<LanePlan>> {
        self.plan.borrow().upgrade()
    }

    /// Serves by this plan from now on: exchanges that hold another are let go.
    pub(crate) fn use_plan(&self, plan: &Rc<LanePlan>) {
        *self.plan.borrow_mut() = Rc::downgrade(plan);
        self.forget_exchanges();
    }

    /// Lets go of exchanges that are kept for use again.
    pub fn forget_exchanges(&self) {
        *self.pool.borrow_mut() = ExchangePool::default();
        self.inputs.clear();
    }

    /// The number of a new connection, unique in the process.
    pub fn next_serial(&self) -> u64 {
        let (mut next, mut end) = self.serials.get();
        if next == end {
            (next, end) = self.all_counters.serial_block();
        }
        self.serials.set((next + 1, end));
        next
    }

    /// Empty room for a text that is made and thrown away again, such as a file's path.
    pub fn take_scratch(&self) -> Vec<u8> {
        let mut scratch = self.scratch.take();
        scratch.clear();
        scratch
    }

    /// Gives the room back, to be used again.
    pub fn keep_scratch(&self, scratch: Vec<u8>) {
        if scratch.capacity() <= KEPT_BUFFER_BYTES_MAX {
            self.scratch.set(scratch);
        }
    }

    /// A random number; see [`Random`].
    pub fn random(&self) -> u64 {
        self.random.next()
    }
}

#[cfg(test)]
mod tests;
