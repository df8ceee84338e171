//! Datagrams on their way from a gate to the sessions of their flows.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::datagram::{DATAGRAMS_MAX, Datagram};
use turnpike_lane::sys::socket::PeerAddress;

use crate::client::Client;
use crate::directory::{Stray, Way};
use crate::flow::{FlowKey, Origin};
use crate::lane::LanePlan;
use crate::phase::NewClient;
use crate::session::Session;
use crate::sessions::{Sessions, log_full, steps};

/// Calls that empty a gate in a turn: a flood is not to keep everything else on the lane waiting.
const CALLS_PER_TURN_MAX: usize = 8;

/// Datagrams of one flow with what is known of their way here.
struct Arrival<'a> {
    plan: &'a Rc<LanePlan>,
    listen: usize,
    key: FlowKey,
    way: &'a Way,
    /// Our address, where the gate is bound to all of them.
    source: Option<IpAddr>,
    datagrams: &'a [&'a [u8]],
}

impl Sessions {
    /// Datagrams wait at a gate, that of the listen of that place in the plan of that generation.
    /// `room`: sessions that may begin.
    pub fn datagrams(
        &mut self,
        event_loop: &mut EventLoop,
        (generation, listen): (u64, usize),
        gate: &Arc<OwnedFd>,
        mut room: usize,
    ) {
        let plan = self.plan_with(generation, listen);
        let lane = Rc::clone(&self.lane);
        let way = Way::Gate(Arc::clone(gate));
        let mut batch = lane.batch();
        for _ in 0..CALLS_PER_TURN_MAX {
            let Ok(count) = batch.receive(gate.as_fd(), DATAGRAMS_MAX) else {
                return;
            };
            // What came to an address that is gone is read, and lost.
            if let Some(plan) = &plan {
                let place = (plan, listen, &way);
                self.received(event_loop, place, batch.datagrams(), &mut room);
            }
            if count < DATAGRAMS_MAX {
                return;
            }
        }
    }

    /// Takes over datagrams of this lane's flows that came to other lanes, and those that sessions
    /// left unread. `room`: as above.
    pub fn take_strays(&mut self, event_loop: &mut EventLoop, mut room: usize) {
        if !self.flows.has_strays() {
            return;
        }
        for stray in self.flows.take_strays() {
            let Stray {
                address,
                key,
                source,
                way,
                bytes,
            } = stray;
            let Some(plan) = self.plan_in_force() else {
                return;
            };
            let mut listens = plan.listens.iter();
            if let Some(listen) = listens.position(|listen| listen.address == address) {
                let arrival = Arrival {
                    plan: &plan,
                    listen,
                    key,
                    way: &way,
                    source,
                    datagrams: &[&bytes],
                };
                self.arrived(event_loop, &arrival, &mut room);
            }
        }
    }

    /// Gives the datagrams of one call to their flows: those of a client that came behind each
    /// other together.
    fn received<'a>(
        &mut self,
        event_loop: &mut EventLoop,
        (plan, listen, way): (&Rc<LanePlan>, usize, &Way),
        datagrams: impl Iterator<Item = Datagram<'a>>,
        room: &mut usize,
    ) {
        let mut datagrams = datagrams.peekable();
        while let Some(first) = datagrams.next() {
            let mut run: [&[u8]; DATAGRAMS_MAX] = [&[]; DATAGRAMS_MAX];
            run[0] = first.bytes;
            let mut count = 1;
            let is_next =
                |next: &Datagram<'_>| (next.peer, next.local) == (first.peer, first.local);
            while let Some(next) = datagrams.next_if(is_next) {
                run[count] = next.bytes;
                count += 1;
            }
            if let Some((key, source)) = key_of(&plan.listens[listen].address, &first) {
                let arrival = Arrival {
                    plan,
                    listen,
                    key,
                    way,
                    source,
                    datagrams: &run[..count],
                };
                self.arrived(event_loop, &arrival, room);
            }
        }
    }

    fn arrived(&mut self, event_loop: &mut EventLoop, arrival: &Arrival<'_>, room: &mut usize) {
        let mut left = arrival.datagrams;
        while let Some((first, others)) = left.split_first() {
            let Some((flow, taken)) = self.flows.takes(arrival.key, left.len()) else {
                self.begin_flow(event_loop, arrival, first, room);
                left = others;
                continue;
            };
            let (its, others) = left.split_at(taken);
            match flow.place() {
                Some(place) => {
                    let sockets = event_loop.numbered_sockets();
                    if !self.stepped.datagrams(&sockets, place, its) {
                        continue;
                    }
                }
                None => its.iter().for_each(|bytes| flow.keep(bytes)),
            }
            left = others;
        }
    }

    /// A datagram of no flow of this lane begins one, unless another lane or process has it.
    fn begin_flow(
        &mut self,
        event_loop: &mut EventLoop,
        arrival: &Arrival<'_>,
        bytes: &[u8],
        room: &mut usize,
    ) {
        let Arrival {
            plan,
            listen,
            key,
            source,
            ..
        } = *arrival;
        let stray = || Stray {
            address: plan.listens[listen].address.clone(),
            key,
            source,
            way: arrival.way.clone(),
            bytes: bytes.to_vec(),
        };
        let gate = match arrival.way {
            Way::Gate(gate) => Arc::clone(gate),
            Way::Process(link) => return link.give_back(&stray()),
            Way::Unknown => return,
        };
        let server = &plan.servers[plan.listens[listen].default_server];
        let content = server.content.as_ref();
        let datagrams_max = content.map_or(1, |content| content.datagrams_max());
        if datagrams_max != 1 && self.flows.leaves(key, &gate, stray) {
            return;
        }
        let Some(left) = room.checked_sub(1) else {
            self.flows.release(key);
            if !std::mem::replace(&mut self.is_full, true) {
                log_full(server, event_loop.connections_max());
            }
            return;
        };
        *room = left;
        self.begin_session(event_loop, arrival, (gate, bytes), datagrams_max);
    }

    /// The session of a flow that is this lane's; `bytes` is its first datagram.
    fn begin_session(
        &mut self,
        event_loop: &mut EventLoop,
        arrival: &Arrival<'_>,
        (gate, bytes): (Arc<OwnedFd>, &[u8]),
        datagrams_max: u64,
    ) {
        let Arrival {
            plan,
            listen,
            key,
            source,
            ..
        } = *arrival;
        let ends = [key.peer, key.local].map(PeerAddress::Inet);
        let mut session = Session::new(self.lane.clone(), plan.clone(), listen, ends);
        session.find_origin(None);
        session.bytes_received.set(bytes.len() as u64);
        session.preread = bytes.to_vec();
        let address = plan.listens[listen].address.clone();
        let origin = Origin { key, gate, source };
        let registered = self.flows.add(address, origin, datagrams_max);
        let flow = Rc::clone(&registered.flow);
        match steps(&session, NewClient::Flow(Rc::clone(&flow))) {
            Ok(steps) => {
                let sockets = event_loop.numbered_sockets();
                let begun = (session, steps, Some(registered));
                if let Some(place) = self.stepped.begin(&sockets, begun, "udp ") {
                    flow.set_place(place);
                }
            }
            Err(_) => self.begin(event_loop, session, Client::Flow(flow), Some(registered)),
        }
    }
}

/// Which flow a datagram is of, and our address, where the gate is bound to all of them.
fn key_of(address: &ListenAddress, datagram: &Datagram<'_>) -> Option<(FlowKey, Option<IpAddr>)> {
    let (ListenAddress::Udp(own), PeerAddress::Inet(peer)) = (address, datagram.peer) else {
        return None;
    };
    let source = datagram.local.filter(|_| own.ip().is_unspecified());
    let mut local = *own;
    if let Some(source) = source {
        local.set_ip(source);
    }
    Some((FlowKey { local, peer }, source))
}
