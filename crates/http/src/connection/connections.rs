//! The connections of a lane: what it holds, and counts of them. What is done with them stands in
//! the modules that do it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use slab::Slab;
use tokio::sync::Notify;
use turnpike_lane::event_loop::Mailbox;
use turnpike_lane::log::Level;
use turnpike_plan::passed::AcceptedConnection;

use super::commands::Command;
use super::open::Connection;
use super::return_queue::ReturnQueue;
use super::rush::Rush;
use super::shortage::Shortages;
use super::slot::Slot;
use super::successor_link::SuccessorLink;
use super::successors::Successors;
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::lane::{LanePlan, LaneShared};

/// The connections of one lane.
pub struct Connections {
    pub(super) lane: Rc<LaneShared>,
    pub(super) plan: Rc<LanePlan>,
    /// Plans before it that connections may still hold: what they buffer goes by time too.
    pub(super) old_plans: Vec<Weak<LanePlan>>,
    pub(super) mailbox: Arc<Mailbox<Command>>,
    /// By token.
    pub(super) slots: Slab<Slot>,
    /// Where the search for idle connections goes on.
    pub(super) room_cursor: usize,
    /// Where the search for stalled connections goes on.
    pub(super) stalled_cursor: usize,
    pub(super) shortages: Shortages,
    pub(super) rush: Rush,
    /// Futures on the lane's runtime.
    pub(super) driven: usize,
    /// Of these, those of connections, which have a slot.
    pub(super) driven_connections: usize,
    /// Of these, those of HTTP/2: their requests are counted apart.
    pub(super) http2_connections: usize,
    /// Futures that answer requests of HTTP/2: these have places of their own.
    pub(super) driven_streams: usize,
    /// Driven connections that end to make room, and still have a slot.
    pub(super) leaving_connections: usize,
    /// Connections whose answer is awaited.
    pub(super) awaited: usize,
    pub(super) return_queue: Rc<ReturnQueue>,
    pub(super) ending: Ending,
    /// When the lane's time was last looked at, in its monotonic milliseconds.
    pub(super) ticked_ms: u64,
    pub(super) round: Round,
    /// Accepted for others, until they take them: gates behind the plan's listens belong to other
    /// protocols.
    pub(super) others: Vec<AcceptedConnection>,
    /// See [`Connections::take_cut`].
    pub(super) cut_until_ms: Option<u64>,
    /// Until when the log need not say again that the lane is full, in its monotonic milliseconds.
    pub(super) full_said_until_ms: u64,
}

/// What is measured at the end of a round: the clock is read once for all of it.
#[derive(Default)]
pub(super) struct Round {
    pub(super) has_worked: bool,
    /// First answers of connections that were accepted in it.
    pub(super) first_answers: u64,
}

/// Whether the lane goes on.
pub(super) enum Ending {
    /// The lane or process serves.
    No,
    /// The lane finishes what it is at; other lanes take what waits.
    Leaving(Successors),
    /// The lane finishes what was begun.
    Draining {
        /// In the lane's monotonic milliseconds.
        since_ms: u64,
        /// The process that takes what waits for a request.
        successor: Option<Arc<SuccessorLink>>,
    },
    /// The lane ends now.
    Now,
}

impl Connections {
    /// No connections yet.
    pub fn new(lane: Rc<LaneShared>, plan: Rc<LanePlan>, mailbox: Arc<Mailbox<Command>>) -> Self {
        lane.use_plan(&plan);
        let return_queue = Rc::new(ReturnQueue {
            returned: RefCell::default(),
            background_ended: Cell::new(0),
            background_spent: Cell::new(0),
            streams_ended: Cell::new(0),
            notify: lane.background.wake().clone(),
        });
        Self {
            lane,
            plan,
            old_plans: Vec::new(),
            mailbox,
            slots: Slab::new(),
            room_cursor: 0,
            stalled_cursor: 0,
            shortages: Shortages::default(),
            rush: Rush::default(),
            driven: 0,
            driven_connections: 0,
            http2_connections: 0,
            driven_streams: 0,
            leaving_connections: 0,
            awaited: 0,
            return_queue,
            ending: Ending::No,
            ticked_ms: 0,
            round: Round::default(),
            others: Vec::new(),
            cut_until_ms: None,
            full_said_until_ms: 0,
        }
    }

    /// The number of the plan in force.
    pub fn generation(&self) -> u64 {
        self.plan.generation
    }

    /// How many of the gates are HTTP's; those behind them are others'.
    pub fn listens(&self) -> usize {
        self.plan.listens.len()
    }

    /// Takes the connections that came by gates of others.
    pub fn take_others(&mut self) -> Vec<AcceptedConnection> {
        std::mem::take(&mut self.others)
    }

    /// Takes the time up to which connections were accepted that a command has closed since the
    /// last call, for those that hold others of the lane's connections.
    pub fn take_cut(&mut self) -> Option<u64> {
        self.cut_until_ms.take()
    }

    /// Whether the lane has the command to end at once.
    pub fn is_terminated(&self) -> bool {
        matches!(self.ending, Ending::Now)
    }

    /// Whether the process ends, so that no connection is kept.
    pub(super) fn is_draining(&self) -> bool {
        matches!(self.ending, Ending::Draining { .. } | Ending::Now)
    }

    /// Does it with the present plan and those before it that are still held.
    pub(super) fn every_plan(&mut self, does: impl Fn(&LanePlan)) {
        does(&self.plan);
        self.old_plans.retain(|old| {
            let old = old.upgrade();
            old.inspect(|old| does(old)).is_some()
        });
    }

    /// Notified when a driven connection is handed back.
    pub fn returned(&self) -> Rc<Notify> {
        self.return_queue.notify.clone()
    }

    /// Counts for `stub_status`: requests that are answered.
    pub(super) fn count_writing(&self, more: u64) {
        let busy = self.driven - self.http2_connections + self.awaited;
        let streams = self.driven_streams as u64;
        let writing = busy as u64 + more;
        self.lane.counters.writing.set(writing);
        self.lane.counters.streams.set(streams);
        self.lane.set_http1_working((writing - streams) as usize);
    }

    /// What is held: places, futures, connections whose answer is awaited, and work that no client
    /// waits for.
    #[cfg(feature = "simulation")]
    pub fn left(&self) -> [usize; 4] {
        let under_way = self.lane.background.under_way();
        [self.slots.len(), self.driven, self.awaited, under_way]
    }

    pub(super) fn close(&self, connection: Connection, reason: CloseReason) {
        self.lane.counters.was_closed(reason);
        drop(connection);
    }

    /// Gives an exchange back to the pool.
    pub(super) fn recycle(&self, exchange: Box<Exchange>) {
        self.lane.recycle(exchange);
    }

    /// A panic costs the one connection, which was dropped on the way.
    pub(super) fn panicked(&self) {
        self.lane.counters.panics.add();
        self.lane.counters.was_closed(CloseReason::Failed);
        self.report(format_args!("a panic was caught; its connection is closed"));
    }

    /// Writes what concerns no connection to the error log of the first server.
    pub(super) fn report(&self, message: std::fmt::Arguments<'_>) {
        self.report_as(Level::Warn, message);
    }

    /// The same at another level.
    pub(super) fn report_as(&self, level: Level, message: std::fmt::Arguments<'_>) {
        if let Some(listen) = self.plan.listens.first() {
            let root = self.plan.server(listen.default_server).root;
            self.plan.location(root).error_log.event(level, message);
        }
    }

    pub(super) fn exchange(&self, connection: &Connection) -> Box<Exchange> {
        let mut exchange = self.lane.exchange(&connection.plan, &connection.facts);
        exchange
            .requester
            .set_proxy_header(&connection.proxy_header);
        connection.security.tell(&mut exchange);
        exchange
    }
}

impl Drop for Connections {
    /// The lane ends: what is buffered for its plans, lines of logs, is written. The plans
    /// themselves may live on in exchanges that were kept for use again.
    fn drop(&mut self) {
        self.every_plan(LanePlan::flush);
    }
}
