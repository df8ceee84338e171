//! The connections of a lane: what it holds, and counts of them. What is done with them stands in
//! the modules that do it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use turnpike_lane::event_loop::Owner;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::{ErrorLog, Level};

use super::http3::Http3;
use super::moving::Moving;
use super::moving::SuccessorLink;
use super::open::Connection;
use super::return_queue::ReturnQueue;
use super::rush::Rush;
use super::shortage::Shortages;
use super::slots::Slots;
use crate::counters::{CloseReason, Doing};
use crate::exchange::Exchange;
use crate::lane::{LanePlan, LaneShared};

/// The connections of one lane.
pub struct Connections {
    pub(super) lane: Rc<LaneShared>,
    pub(super) plan: Rc<LanePlan>,
    /// Plans before it that connections may still hold: what they buffer goes by time too.
    pub(super) old_plans: Vec<Weak<LanePlan>>,
    pub(super) slots: Slots,
    /// Where the search for idle connections goes on.
    pub(super) room_cursor: usize,
    /// Where the search for stalled connections goes on.
    pub(super) stalled_cursor: usize,
    pub(super) shortages: Shortages,
    pub(super) rush: Rush,
    /// Futures on the lane's runtime that are not those of connections.
    pub(super) beside: Beside,
    pub(super) return_queue: Rc<ReturnQueue>,
    pub(super) ending: Ending,
    /// What the lane has for HTTP/3; `None`: no datagram has come.
    pub(super) http3: Option<Box<Http3>>,
    /// The number of HTTP among the lane's protocols.
    pub(super) owner: Owner,
    /// When the lane's time was last looked at, in its monotonic milliseconds.
    pub(super) ticked_ms: u64,
    pub(super) round: Round,
    /// On their way to other lanes, until the lane takes them. They stay in the boxes in which the
    /// lane passes them on.
    #[expect(clippy::vec_box)]
    pub(super) moving: Vec<Box<Moving>>,
}

/// What is measured at the end of a round: the clock is read once for all of it.
#[derive(Default)]
pub(super) struct Round {
    pub(super) has_worked: bool,
    /// First answers of connections that were accepted in it.
    pub(super) first_answers: u64,
}

/// Futures on the lane's runtime that have no place among the connections.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// Answers to requests of HTTP/2, which have places of their own.
    pub(super) streams: usize,
    /// Work that no client waits for.
    pub(super) background: usize,
}

/// Whether the lane goes on, and what becomes of its connections if it does not.
pub(super) enum Ending {
    /// The lane or process serves.
    No,
    /// The lane finishes what it is at; other lanes take what waits.
    Leaving {
        /// Gates that the other lanes have.
        addresses: Vec<ListenAddress>,
    },
    /// The lane finishes what was begun.
    Draining {
        /// In the lane's monotonic milliseconds.
        since_ms: u64,
        /// The process that takes what waits for a request.
        successor: Option<Arc<SuccessorLink>>,
    },
}

impl Connections {
    /// No connections yet.
    pub(super) fn begin(lane: Rc<LaneShared>, plan: Rc<LanePlan>, owner: Owner) -> Self {
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
            slots: Slots::default(),
            room_cursor: 0,
            stalled_cursor: 0,
            shortages: Shortages::default(),
            rush: Rush::default(),
            beside: Beside::default(),
            return_queue,
            ending: Ending::No,
            http3: None,
            owner,
            ticked_ms: 0,
            round: Round::default(),
            moving: Vec::new(),
        }
    }

    /// The request that the lane has begun last; readable from every thread.
    pub fn doing(&self) -> Arc<Doing> {
        self.lane.progress.doing().clone()
    }

    /// Whether the process ends, so that no connection is kept.
    pub(super) fn is_draining(&self) -> bool {
        matches!(self.ending, Ending::Draining { .. })
    }

    /// Does it with the present plan and those before it that are still held.
    pub(super) fn every_plan(&mut self, does: impl Fn(&LanePlan)) {
        does(&self.plan);
        self.old_plans.retain(|old| {
            let old = old.upgrade();
            old.inspect(|old| does(old)).is_some()
        });
    }

    /// Counts for `stub_status`: requests that are answered.
    pub(super) fn count_writing(&self, more: u64) {
        let population = self.slots.population();
        let connections = population.driven_http1 + population.awaited;
        let streams = self.beside.streams as u64;
        let writing = (connections + self.beside.background) as u64 + streams + more;
        self.lane.counters.writing.set(writing);
        self.lane.counters.streams.set(streams);
        self.lane.set_http1_working((writing - streams) as usize);
    }

    /// The lane's own things.
    #[cfg(feature = "simulation")]
    pub fn shared(&self) -> Rc<LaneShared> {
        Rc::clone(&self.lane)
    }

    /// What is held: places, futures, connections whose answer is awaited, and work that no client
    /// waits for.
    #[cfg(feature = "simulation")]
    pub fn left(&self) -> [usize; 4] {
        let under_way = self.lane.background.under_way();
        let population = self.slots.population();
        [
            self.slots.len(),
            population.driven(),
            population.awaited,
            under_way,
        ]
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
        if let Some(log) = self.log_of(0) {
            log.event(level, message);
        }
    }

    /// The error log of the server of that listen, for what concerns no connection.
    pub(super) fn log_of(&self, listen: usize) -> Option<&ErrorLog> {
        let listen = self.plan.listens.get(listen)?;
        let root = self.plan.server(listen.default_server).root;
        Some(&self.plan.location(root).error_log)
    }

    pub(super) fn exchange(&self, connection: &Connection) -> Box<Exchange> {
        let mut exchange = self.lane.exchange(&connection.plan, &connection.facts);
        exchange
            .requester
            .set_proxy_header(&connection.proxy_header);
        connection.security.tell(&mut exchange.requester);
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
