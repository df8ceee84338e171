//! Sessions that a lane serves in steps, without a future: what passes bytes on as they are has to
//! wait for sockets and for time only, and the lane's own loop waits for both.
//!
//! A step must not block. What a session's sockets have to say is told once (edge-triggered), so a
//! step reads until a socket is empty, or asks to be told again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use slab::Slab;
use turnpike_lane::event_loop::{NumberedSockets, Wheel};
use turnpike_lane::log::Level;
use turnpike_lane::sys::epoll::Event;

use crate::flow_table::Registered;
use crate::phase::{Happened, NEVER_MS, Next, Status, Steps};
use crate::serve::{admit, begun, finish};
use crate::session::Session;
use crate::watch::{SocketOf, Watch};

/// Bits of a socket's number that are the place of its session: more sessions than descriptors.
const PLACE_BITS: u32 = 28;

/// The other bits, but that of the socket, count sessions, so that a number does not come again
/// soon.
const COUNT_BITS: u32 = NumberedSockets::NUMBER_BITS - PLACE_BITS - 1;

/// The sessions of a lane that are served so.
pub(crate) struct SteppedSessions {
    entries: Slab<Entry>,
    /// Sessions so far.
    count: u64,
    wheel: Wheel,
    due: Vec<u32>,
}

struct Entry {
    /// Boxed, since the table of sessions grows.
    session: Box<Session>,
    steps: Box<dyn Steps>,
    /// The place of a flow in the lane's table of them; it is left when this is dropped.
    _registered: Option<Registered>,
    number: u64,
    until_ms: u64,
    /// When the wheel says that the deadline may have come.
    in_wheel_ms: u64,
}

impl SteppedSessions {
    /// No sessions yet.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self {
            entries: Slab::new(),
            count: 0,
            wheel: Wheel::new(now_ms),
            due: Vec::new(),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Begins a session; returns its place, unless it has ended already.
    pub(crate) fn begin(
        &mut self,
        sockets: &NumberedSockets,
        (session, steps, registered): (Session, Box<dyn Steps>, Option<Registered>),
        kind: &str,
    ) -> Option<usize> {
        let mut session = Box::new(session);
        begun(&session, kind);
        if let Err(status) = admit(&mut session) {
            finish(&mut session, status);
            return None;
        }
        session.action.set("");
        let slot = self.entries.vacant_entry();
        let place = slot.key();
        self.count = self.count.wrapping_add(1) & ((1 << COUNT_BITS) - 1);
        slot.insert(Entry {
            session,
            steps,
            _registered: registered,
            number: (self.count << PLACE_BITS | place as u64) << 1,
            until_ms: NEVER_MS,
            in_wheel_ms: NEVER_MS,
        });
        self.step(sockets, place, Happened::Begun).then_some(place)
    }

    /// A socket with this number has an event.
    pub(crate) fn ready(&mut self, sockets: &NumberedSockets, number: u64, event: Event) {
        let of = match number & 1 {
            0 => SocketOf::Client,
            _ => SocketOf::Server,
        };
        let place = (number >> 1 & ((1 << PLACE_BITS) - 1)) as usize;
        // Other events of the turn may have ended the session.
        let is_known = |entry: &Entry| entry.number == number & !1;
        if self.entries.get(place).is_some_and(is_known) {
            self.step(sockets, place, Happened::Ready(of, event));
        }
    }

    /// The client of the session at that place has sent datagrams. `false`: its deadline had
    /// passed, though the wheel has not told yet; it has ended, and they are another session's.
    pub(crate) fn datagrams(
        &mut self,
        sockets: &NumberedSockets,
        place: usize,
        datagrams: &[&[u8]],
    ) -> bool {
        let is_overdue = |entry: &Entry| entry.until_ms <= entry.session.lane.clock.now_ms();
        if self.entries.get(place).is_some_and(is_overdue)
            && !self.step(sockets, place, Happened::Due)
        {
            return false;
        }
        self.step(sockets, place, Happened::Datagrams(datagrams));
        true
    }

    /// Goes on with the sessions whose deadline has passed.
    pub(crate) fn tick(&mut self, sockets: &NumberedSockets, now_ms: u64) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.expire(now_ms, &mut due);
        for place in due.drain(..) {
            let Some(entry) = self.entries.get_mut(place as usize) else {
                continue;
            };
            entry.in_wheel_ms = NEVER_MS;
            let until_ms = entry.until_ms;
            if until_ms <= now_ms {
                self.step(sockets, place as usize, Happened::Due);
            } else {
                self.wait(place as usize, until_ms);
            }
        }
        self.due = due;
    }

    /// Ends the sessions that began up to that time, in monotonic milliseconds.
    pub(crate) fn cut(&mut self, until_ms: u64) {
        let has_to_end = |(_, entry): &(usize, &Entry)| entry.session.started_ms <= until_ms;
        let places = self.entries.iter().filter(has_to_end);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        for place in places {
            let session = &self.entries[place].session;
            session.log(Level::Warn, format_args!("{}", crate::cut::MESSAGE));
            self.end(place, Status::Ok);
        }
    }

    /// Makes a step; `false`: the session has ended. A panic ends it.
    fn step(&mut self, sockets: &NumberedSockets, place: usize, happened: Happened<'_>) -> bool {
        let Some(entry) = self.entries.get_mut(place) else {
            return false;
        };
        let number = entry.number;
        let watch = Watch::new(sockets, number);
        let step = || entry.steps.step(&mut entry.session, &watch, happened);
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(Next::Wait { until_ms }) => {
                self.wait(place, until_ms);
                return true;
            }
            Ok(Next::End(status)) => self.end(place, status),
            Err(_) => {
                self.wheel.remove(place as u32);
                self.entries.remove(place);
            }
        }
        false
    }

    /// The wheel is only touched if it would be late: most deadlines move to the future.
    fn wait(&mut self, place: usize, until_ms: u64) {
        let entry = &mut self.entries[place];
        entry.until_ms = until_ms;
        if until_ms < entry.in_wheel_ms {
            entry.in_wheel_ms = until_ms;
            self.wheel.insert(place as u32, until_ms);
        }
    }

    fn end(&mut self, place: usize, status: Status) {
        self.wheel.remove(place as u32);
        let mut entry = self.entries.remove(place);
        finish(&mut entry.session, status);
    }
}
