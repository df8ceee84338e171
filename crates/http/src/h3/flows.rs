//! Which lane, and which process, a datagram of QUIC belongs to: as its connection ID says, where
//! that is one of ours. The ID of a first flight is the client's choice, so the lane that gets the
//! first of its datagrams keeps all of them.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::Owner;
use turnpike_lane::flows::{FlowKey, ForwardedDatagram};
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_plan::protocol::LaneCommon;
use turnpike_quic::{CONNECTION_ID_BYTES, ConnectionIds, HostKey, Place};
use turnpike_wire::quic::{CONNECTION_ID_BYTES_MAX, Header, LongType, header};

use super::process::OwnPlace;
use crate::counters::HttpCounters;
use crate::lane::LaneShared;

/// How long the ID of a first flight is remembered, in milliseconds: its client has another one by
/// then, or has given up.
const FLIGHT_KEPT_MS: u64 = 10_000;

/// First flights of a lane that are remembered. Of more, datagrams may go to several lanes where
/// the kernel lets them: their clients try again.
const FLIGHTS_KEPT_MAX: usize = 16 * 1024;

/// What a key is made of.
const PLACE: u8 = 0;
const FIRST_FLIGHT: u8 = 1;

/// The flows of a lane.
pub(crate) struct QuicFlows {
    lane: Rc<LaneCommon>,
    counters: Arc<HttpCounters>,
    owner: Owner,
    ids: ConnectionIds,
    /// As processes before this one have written them, if by another key.
    old_ids: Option<ConnectionIds>,
    place: OwnPlace,
    /// Since when the place is noted: with the first gate.
    is_noted: bool,
    /// First flights of this lane, the oldest first, with when they are forgotten.
    flights: VecDeque<(u64, FlowKey)>,
}

/// The owner of a datagram.
enum Whose {
    Ours,
    /// Of the connection of another place, as the key says or the one before it, or else of whoever
    /// has got the first of its flight.
    Others([Option<FlowKey>; 2], Option<FlowKey>),
    /// No ID of a connection is in it.
    Nobody,
}

impl QuicFlows {
    /// The flows of the lane at this place.
    pub(crate) fn new(
        lane: &LaneShared,
        owner: Owner,
        host_key: &HostKey,
        place: OwnPlace,
    ) -> Self {
        let ids = |key: &HostKey| ConnectionIds::new(key.connection_ids());
        Self {
            lane: Rc::clone(&lane.common),
            counters: Arc::clone(&lane.counters),
            owner,
            ids: ids(host_key),
            old_ids: host_key.old().map(ids),
            place,
            is_noted: false,
            flights: VecDeque::new(),
        }
    }

    /// Whether this lane is to take a datagram that came by this gate. Else it was given to the
    /// lane or process that has its connection, or is nobody's.
    pub(crate) fn takes(
        &mut self,
        bytes: &[u8],
        gate: &Arc<OwnedFd>,
        datagram: impl Fn(FlowKey) -> ForwardedDatagram,
    ) -> bool {
        if !std::mem::replace(&mut self.is_noted, true) {
            let own = self.place_key(self.place.get());
            self.lane.flows.claim(own, gate);
        }
        let flows = &self.lane.flows;
        match self.whose(bytes) {
            Whose::Ours => true,
            Whose::Nobody => false,
            Whose::Others(places, first_flight) => {
                for key in places.into_iter().flatten() {
                    if flows.forward(key, gate, || datagram(key)) {
                        self.counters.quic_forwarded.add();
                        return false;
                    }
                    // Whoever had it is no more: its client is told so.
                    flows.release(key);
                }
                first_flight.is_none_or(|key| self.takes_first_flight(key, gate, datagram))
            }
        }
    }

    fn takes_first_flight(
        &mut self,
        key: FlowKey,
        gate: &Arc<OwnedFd>,
        datagram: impl Fn(FlowKey) -> ForwardedDatagram,
    ) -> bool {
        if self.flights.len() >= FLIGHTS_KEPT_MAX {
            return true;
        }
        if self.lane.flows.forward(key, gate, || datagram(key)) {
            self.counters.quic_forwarded.add();
            return false;
        }
        let ends_ms = self.lane.clock.now_ms() + FLIGHT_KEPT_MS;
        if self.flights.back().is_none_or(|(_, last)| *last != key) {
            self.flights.push_back((ends_ms, key));
        }
        true
    }

    fn whose(&self, bytes: &[u8]) -> Whose {
        let (id, is_first) = match header(bytes) {
            None => return Whose::Nobody,
            Some(Header::Short { rest }) => match rest.get(..CONNECTION_ID_BYTES) {
                Some(id) => (id, false),
                None => return Whose::Nobody,
            },
            Some(Header::Long { destination, .. }) => {
                let kind = bytes.first().map(|first| LongType::of(*first));
                // Those that a client sends before it has an ID of ours, and still when it has one.
                let is_first = matches!(kind, Some(LongType::Initial | LongType::ZeroRtt));
                (destination, is_first)
            }
        };
        let is_first = is_first && id.len() <= CONNECTION_ID_BYTES_MAX;
        let first_flight = is_first.then(|| self.key(FIRST_FLIGHT, id));
        let place = self.ids.read(id);
        let old_place = self.old_ids.and_then(|ids| ids.read(id));
        match place {
            Some(place) if place == self.place.get() => Whose::Ours,
            Some(_) if simulation::is_faulty(Fault::PlaceMisread) => Whose::Ours,
            None if first_flight.is_none() => Whose::Nobody,
            _ => {
                let places = [place, old_place].map(|place| Some(self.place_key(place?)));
                Whose::Others(places, first_flight)
            }
        }
    }

    fn place_key(&self, place: Place) -> FlowKey {
        let [high, low] = place.process.to_be_bytes();
        self.key(PLACE, &[place.serial, place.gate, high, low])
    }

    fn key(&self, kind: u8, bytes: &[u8]) -> FlowKey {
        FlowKey::write(self.owner, |key| {
            let end = bytes.len() + 1;
            key[0] = kind;
            key[1..end].copy_from_slice(bytes);
            end
        })
    }

    /// Forgets old first flights.
    pub(crate) fn tick(&mut self, now_ms: u64) {
        while let Some((_, key)) = self.flights.pop_front_if(|(ends_ms, _)| *ends_ms <= now_ms) {
            self.lane.flows.release(key);
        }
    }
}

impl Drop for QuicFlows {
    /// The lane has no connections any more.
    fn drop(&mut self) {
        for (_, key) in self.flights.drain(..) {
            self.lane.flows.release(key);
        }
        self.lane.flows.release(self.place_key(self.place.get()));
    }
}
