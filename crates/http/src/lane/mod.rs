//! What a lane has at hand while it serves: its clock and counters, the plan with the lane's own
//! state for it, and a pool of exchanges.

mod background;
mod progress;
mod shutdown;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use turnpike_lane::clock::Clock;
use turnpike_lane::event_loop::WatchedSockets;
use turnpike_lane::handshakes::Handshakes;
use turnpike_lane::pipes::Pipes;
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_plan::protocol::LaneCommon;
use turnpike_wire::h2::RequestReader;

use crate::counters::{AllCounters, HttpCounters};
use crate::exchange::Exchange;
use crate::h1::input::InputPool;
use crate::h2::output_pool::OutputPool;
use crate::plan::resolved::Plan;
use crate::requester::{ConnectionFacts, Requester};
use crate::response::LocalFuture;
use crate::scratch::Scratches;
use crate::streams::places::StreamPlaces;

use background::Background;
pub use progress::LaneProgress;
pub use shutdown::Shutdown;
pub use turnpike_plan::lane::{LaneSlot, LaneState, LaneStateMaker};

/// Bytes of memory that exchanges kept for use again may hold together: some hundreds of the usual
/// ones. One serves the fast path; many are in use at once where many answers are awaited.
const POOL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes that a buffer of a pooled exchange may keep; a larger one is given back to the allocator.
/// A body of 64 KB fits, and a piece of one with a usual head before it.
const KEPT_BUFFER_BYTES_MAX: usize = 72 * 1024;

/// A lane's own things, whatever the plan.
pub struct LaneShared {
    /// What the lane's protocols share.
    pub common: Rc<LaneCommon>,
    /// Number of the lane, from 0.
    pub index: usize,
    /// Time, read once a turn.
    pub clock: Rc<Clock>,
    /// What happened on this lane; readable from everywhere.
    pub counters: Arc<HttpCounters>,
    /// Counters of all lanes, for the pages that sum them.
    pub all_counters: Arc<AllCounters>,
    /// What the lane does at the moment.
    pub progress: LaneProgress,
    /// Whether the lane still serves as before.
    pub shutdown: Shutdown,
    /// Work that no connection of HTTP/1 drives.
    pub(crate) background: Background,
    /// TLS handshakes of this turn.
    pub handshakes: Rc<Handshakes>,
    /// Where sockets of upstream servers are watched; not there before the first plan.
    pub watched_sockets: OnceCell<WatchedSockets>,
    buffers: Buffers,
    waiting: WaitingRequests,
}

/// Requests that wait for something.
#[derive(Default)]
struct WaitingRequests {
    /// See [`LaneShared::stream_places`].
    streams: Rc<StreamPlaces>,
    /// See [`LaneShared::http1_working`].
    http1: Cell<usize>,
}

/// What was used before and is used again.
#[derive(Default)]
struct Buffers {
    /// The plan in force, which exchanges of the pool hold.
    plan: RefCell<Weak<LanePlan>>,
    exchanges: RefCell<ExchangePool>,
    /// Buffers that connections read into.
    inputs: Rc<InputPool>,
    /// See [`LaneShared::pipes`].
    pipes: Rc<Pipes>,
    /// See [`LaneShared::take_scratch`].
    scratches: Scratches,
    /// Room for frames.
    outputs: Rc<OutputPool>,
    /// See [`LaneShared::take_request_reader`].
    request_reader: Cell<Option<Box<RequestReader>>>,
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

/// A plan of HTTP as one lane holds it.
pub type LanePlan = turnpike_plan::lane::LanePlan<Plan>;

impl LaneShared {
    /// A lane's own things.
    pub fn new(common: Rc<LaneCommon>, all_counters: Arc<AllCounters>) -> Rc<Self> {
        Rc::new(Self {
            index: common.index,
            counters: all_counters.add_lane(common.index),
            all_counters,
            clock: Rc::clone(&common.clock),
            progress: LaneProgress::default(),
            shutdown: Shutdown::default(),
            handshakes: Rc::clone(&common.handshakes),
            background: Background::new(Rc::clone(&common.ended)),
            watched_sockets: OnceCell::new(),
            buffers: Buffers::default(),
            waiting: WaitingRequests::default(),
            common,
        })
    }

    /// The pipes by which bodies pass inside the kernel.
    pub(crate) fn pipes(&self) -> &Rc<Pipes> {
        &self.buffers.pipes
    }

    /// An exchange for a connection: one that was used before, or a new one.
    pub fn exchange(
        self: &Rc<Self>,
        plan: &Rc<LanePlan>,
        client: &ConnectionFacts,
    ) -> Box<Exchange> {
        match self.buffers.exchanges.borrow_mut().take() {
            Some(mut exchange) => {
                if !Rc::ptr_eq(&exchange.plan, plan) {
                    exchange.plan = plan.clone();
                }
                exchange.requester = Requester::new(*client);
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
        if Rc::as_ptr(&exchange.plan) != self.buffers.plan.borrow().as_ptr() {
            return;
        }
        exchange.clear();
        let kept_bytes = exchange.trim_buffers(KEPT_BUFFER_BYTES_MAX);
        let bytes = size_of::<Exchange>() + kept_bytes;
        self.buffers.exchanges.borrow_mut().put(exchange, bytes);
    }

    /// Runs a task that no client waits for on the lane's runtime, from the end of this turn on.
    pub fn run_in_background(&self, task: LocalFuture<'static, ()>) {
        self.background.add_request(task);
    }

    /// Runs the answer to a request, of many on a connection, on the lane's runtime.
    pub(crate) fn drive_stream(&self, answer: LocalFuture<'static, ()>) {
        self.background.add_stream(answer);
    }

    /// The plan in force.
    pub(crate) fn plan(&self) -> Option<Rc<LanePlan>> {
        self.buffers.plan.borrow().upgrade()
    }

    /// Serves by this plan from now on: exchanges that hold another are let go.
    pub(crate) fn use_plan(&self, plan: &Rc<LanePlan>) {
        *self.buffers.plan.borrow_mut() = Rc::downgrade(plan);
        self.forget_exchanges();
    }

    /// Buffers that connections read into.
    pub(crate) fn inputs(&self) -> &Rc<InputPool> {
        &self.buffers.inputs
    }

    /// Lets go of exchanges that are kept for use again.
    pub fn forget_exchanges(&self) {
        *self.buffers.exchanges.borrow_mut() = ExchangePool::default();
        self.buffers.inputs.clear();
    }

    /// The number of a new connection, unique in the process.
    pub fn next_serial(&self) -> u64 {
        self.common.next_serial()
    }

    /// Empty room for a text that is made and thrown away again, such as a file's path.
    pub fn take_scratch(&self) -> Vec<u8> {
        self.scratches().take()
    }

    /// Gives the room back, to be used again.
    pub fn keep_scratch(&self, scratch: Vec<u8>) {
        self.scratches().keep(scratch);
    }

    /// All such room.
    pub(crate) fn scratches(&self) -> &Scratches {
        &self.buffers.scratches
    }

    /// The places of HTTP/2 requests that wait.
    pub(crate) fn stream_places(&self) -> &Rc<StreamPlaces> {
        &self.waiting.streams
    }

    /// Connections of HTTP/1 whose request waits for something, and requests without a client.
    pub(crate) fn http1_working(&self) -> usize {
        self.waiting.http1.get()
    }

    /// Sets how many these are.
    pub(crate) fn set_http1_working(&self, count: usize) {
        self.waiting.http1.set(count);
    }

    /// Room for frames of HTTP/2 connections.
    pub(crate) fn outputs(&self) -> &Rc<OutputPool> {
        &self.buffers.outputs
    }

    /// Takes what reads the header blocks of HTTP/2, of one connection at a time.
    pub(crate) fn take_request_reader(&self) -> Box<RequestReader> {
        self.buffers.request_reader.take().unwrap_or_default()
    }

    /// Gives it back, to be used again.
    pub(crate) fn keep_request_reader(&self, reader: Box<RequestReader>) {
        self.buffers.request_reader.set(Some(reader));
    }

    /// A random number; see [`LaneCommon::random`].
    pub fn random(&self) -> u64 {
        self.common.random()
    }
}

#[cfg(test)]
mod tests;
