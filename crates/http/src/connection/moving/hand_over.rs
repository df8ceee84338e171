//! Connections that move from one lane to another, when a new configuration has fewer lanes, and
//! from one process to another, when another one serves.
//!
//! ```text
//!  lane that goes:    parked ─► Moving ─► the lane, which gives it to another ─► parked there
//!                     driven ─► finished here ─► as above
//!  process that goes: parked ─► Packet ─► link ─► Moving ─► mailbox of a lane there
//! ```
//!
//! Nothing is closed for it: the transport goes over with what was read from it. What a successor
//! cannot take (it has no such gate) stays where it is until it ends. Nothing here may lose a
//! connection because a successor has just ended: then the next one is asked.

use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;

use super::successor_link::{Packet, Sent, SuccessorLink};
use super::{Moving, Origin};
use crate::connection::connections::{Connections, Ending};
use crate::connection::open::Connection;
use crate::connection::slot::Parked;
use crate::connection::slots::Place;
use crate::counters::CloseReason;
use crate::h1::input::Input;
use crate::plan::ListenIndex;

impl Connections {
    /// Has a connection move to a lane that stays; gives it back where that cannot be.
    fn hand_over(&mut self, parked: Parked) -> Option<Parked> {
        let Parked {
            connection,
            waits_for,
            deadline_ms,
        } = parked;
        let address = &connection.plan.listen(connection.facts.listen).address;
        let is_there =
            matches!(&self.ending, Ending::Leaving { addresses } if addresses.contains(address));
        if !is_there {
            return Some(Parked {
                connection,
                waits_for,
                deadline_ms,
            });
        }
        let address = address.clone();
        let Connection {
            transport,
            facts,
            no_delay,
            proxy_header,
            security,
            ..
        } = connection;
        self.moving.push(Box::new(Moving {
            transport,
            facts,
            no_delay,
            proxy_header: proxy_header.as_deref().cloned(),
            security,
            address,
            waits_for,
            origin: Origin::Lane { deadline_ms },
        }));
        None
    }

    /// Has a parked connection move to another lane where this one goes; gives it back where it
    /// stays. It has left its place.
    pub(in crate::connection) fn move_parked(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        parked: Parked,
    ) -> Option<Parked> {
        if let Place::At(_) = place {
            event_loop.unwatch(parked.connection.transport.as_fd());
        }
        let back = self.hand_over(parked);
        self.unpark(event_loop, place);
        back
    }

    /// Keeps a connection that no lane takes any more: those that stay have ended.
    pub(in crate::connection) fn keep_here(&mut self, event_loop: &mut EventLoop, moving: Moving) {
        self.ending = Ending::Leaving {
            addresses: Vec::new(),
        };
        self.lane.counters.active.sub();
        self.adopt_connection(event_loop, moving);
    }

    /// Hands over all that is parked.
    pub(in crate::connection) fn hand_over_waiting(&mut self, event_loop: &mut EventLoop) {
        let tokens: Vec<u32> = self.slots.iter().map(|(token, _)| token).collect();
        for token in tokens {
            if let Some(parked) = self.take_parked(event_loop, token) {
                self.put_parked(event_loop, Place::New, parked);
            }
        }
    }

    /// Gives what waits for a request to the process that takes it over, if there is one: no
    /// client's next request can then meet the end of this process. What does not fit into the
    /// link now is left for the next tick.
    pub(in crate::connection) fn give_to_successor(&mut self, event_loop: &mut EventLoop) {
        let Some(successor) = self.successor().cloned() else {
            return;
        };
        let mut index = 0;
        loop {
            let mut packet = Packet::new(&successor);
            let mut given: Vec<u32> = Vec::new();
            while index < self.slots.capacity() && !packet.is_full() {
                let parked = self.slots.parked(index as u32);
                if parked.is_some_and(|parked| packet.add(parked)) {
                    given.push(index as u32);
                }
                index += 1;
            }
            if packet.is_empty() {
                return;
            }
            match successor.send(&packet) {
                Sent::Whole => {}
                Sent::Later => return,
                Sent::Never => return self.lose_successor(),
            }
            for token in given {
                if self.take_parked(event_loop, token).is_some() {
                    self.lane.counters.active.sub();
                    self.lane.counters.moved.add();
                }
            }
        }
    }

    /// The process that takes what waits for a request.
    pub(in crate::connection) fn successor(&self) -> Option<&Arc<SuccessorLink>> {
        match &self.ending {
            Ending::Draining { successor, .. } => successor.as_ref(),
            _ => None,
        }
    }

    fn lose_successor(&mut self) {
        if let Ending::Draining { successor, .. } = &mut self.ending {
            *successor = None;
        }
    }

    /// Takes a connection of another lane over, or of the process before.
    pub(in crate::connection) fn adopt_connection(
        &mut self,
        event_loop: &mut EventLoop,
        moving: Moving,
    ) {
        let listens = &self.plan.listens;
        let place = listens
            .iter()
            .position(|listen| listen.address == moving.address);
        self.lane.counters.active.add();
        let mut connection = Connection {
            transport: moving.transport,
            input: Input::new(self.lane.inputs()),
            facts: moving.facts,
            no_delay: moving.no_delay,
            plan: self.plan.clone(),
            proxy_header: moving.proxy_header.map(Rc::new),
            security: moving.security,
        };
        // Only where its gate went in a reload after the one that moved it, or after the offer.
        let Some(place) = place else {
            self.close(connection, CloseReason::Drained);
            return;
        };
        connection.facts.listen = ListenIndex(place as u32);
        let deadline_ms = match moving.origin {
            Origin::Lane { deadline_ms } => Some(deadline_ms),
            Origin::Process => {
                connection.facts.serial = self.lane.next_serial();
                self.lane.counters.accepted.add();
                self.lane.counters.handled.add();
                None
            }
        };
        // Of what a TLS session has decrypted, no event will tell here.
        let holds_input = connection.transport.holds_input();
        let token = match deadline_ms {
            Some(deadline_ms) if !self.is_draining() => {
                let parked = Parked {
                    connection,
                    waits_for: moving.waits_for,
                    deadline_ms,
                };
                self.put_parked(event_loop, Place::New, parked)
            }
            // With its time from now on, or that of a drain.
            _ => self.park(event_loop, Place::New, connection, moving.waits_for),
        };
        if let Some(token) = token.filter(|_| holds_input) {
            self.parked_ready(event_loop, token, false);
        }
    }

    /// Takes a connection out of its place, as if it had never been parked here.
    fn take_parked(&mut self, event_loop: &mut EventLoop, token: u32) -> Option<Parked> {
        let parked = self.slots.take_parked(token)?;
        self.count_unparked(&parked.waits_for);
        event_loop.unwatch(parked.connection.transport.as_fd());
        self.unpark(event_loop, Place::At(token));
        Some(parked)
    }
}
