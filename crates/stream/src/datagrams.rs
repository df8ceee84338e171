//! Datagrams on their way from a gate to the sessions of their flows.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::flows::{Arrival, ForwardedDatagram};
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::datagram::{DATAGRAMS_MAX, Datagram};
use turnpike_lane::sys::socket::PeerAddress;

use crate::client::Client;
use crate::flow::{FlowKey, Origin};
use crate::lane::LanePlan;
use crate::phase::NewClient;
use crate::session::Session;
use crate::sessions::{Sessions, log_full, steps};

/// Calls that empty a gate in a turn: a flood is not to keep everything else on the lane waiting.
const CALLS_PER_TURN_MAX: usize = 8;

/// Datagrams of one flow, and how they came here.
struct Received<'a> {
    plan: &'a Rc<LanePlan>,
    listen: usize,
    key: FlowKey,
    arrival: &'a Arrival,
    /// Our address, where the gate is bound to all of them.
    source: Option<IpAddr>,
    datagrams: &'a [&'a [u8]],
}

impl Sessions {
    /// Reads the datagrams that wait at the gate of the listen of that place. `room`: sessions that
    /// may begin.
    pub(crate) fn read_datagrams(
        &mut self,
        event_loop: &mut EventLoop,
        listen: usize,
        gate: &Arc<OwnedFd>,
        mut room: usize,
    ) {
        let plan = Rc::clone(&self.plan);
        let lane = Rc::clone(&self.lane);
        let arrival = Arrival::Gate(Arc::clone(gate));
        let mut batch = lane.batch();
        for _ in 0..CALLS_PER_TURN_MAX {
            let Ok(count) = batch.receive(gate.as_fd(), DATAGRAMS_MAX) else {
                return;
            };
            let place = (&plan, listen, &arrival);
            self.received(event_loop, place, batch.datagrams(), &mut room);
            if count < DATAGRAMS_MAX {
                return;
            }
        }
    }

    /// Takes over a datagram of a flow of this lane that came to another one, or that a session
    /// left unread. `room`: as above; a session that begins takes of it.
    pub(crate) fn take_forwarded(
        &mut self,
        event_loop: &mut EventLoop,
        datagram: ForwardedDatagram,
        room: &mut usize,
    ) {
        let ForwardedDatagram {
            gate_address,
            peer,
            local,
            source,
            arrival,
            bytes,
            ..
        } = datagram;
        let plan = Rc::clone(&self.plan);
        let mut listens = plan.listens.iter();
        if let Some(listen) = listens.position(|listen| listen.address == gate_address) {
            let received = Received {
                plan: &plan,
                listen,
                key: FlowKey { local, peer },
                arrival: &arrival,
                source,
                datagrams: &[&bytes],
            };
            self.arrived(event_loop, &received, room);
        }
    }

    /// Gives the datagrams of one call to their flows: those of a client that came behind each
    /// other together.
    fn received<'a>(
        &mut self,
        event_loop: &mut EventLoop,
        (plan, listen, arrival): (&Rc<LanePlan>, usize, &Arrival),
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
                let received = Received {
                    plan,
                    listen,
                    key,
                    arrival,
                    source,
                    datagrams: &run[..count],
                };
                self.arrived(event_loop, &received, room);
            }
        }
    }

    fn arrived(&mut self, event_loop: &mut EventLoop, received: &Received<'_>, room: &mut usize) {
        let mut left = received.datagrams;
        while let Some((first, others)) = left.split_first() {
            let Some((flow, taken)) = self.flows.takes(received.key, left.len()) else {
                self.begin_flow(event_loop, received, first, room);
                left = others;
                continue;
            };
            let (its, others) = left.split_at(taken);
            match flow.place() {
                Some(place) => {
                    let sockets = event_loop.numbered_sockets(self.owner);
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
        received: &Received<'_>,
        bytes: &[u8],
        room: &mut usize,
    ) {
        let Received {
            plan,
            listen,
            key,
            source,
            ..
        } = *received;
        let datagram = || ForwardedDatagram {
            key: self.flows.in_directory(key),
            gate_address: plan.listens[listen].address.clone(),
            peer: key.peer,
            local: key.local,
            source,
            arrival: received.arrival.clone(),
            bytes: bytes.to_vec(),
        };
        let gate = match received.arrival {
            Arrival::Gate(gate) => Arc::clone(gate),
            Arrival::Process(behind) => return behind.give_back(&datagram()),
            Arrival::Returned => return,
        };
        let server = &plan.servers[plan.listens[listen].default_server];
        let content = server.content.as_ref();
        let datagrams_max = content.map_or(1, |content| content.datagrams_max());
        if datagrams_max != 1 && self.flows.forward(key, &gate, datagram) {
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
        self.begin_session(event_loop, received, (gate, bytes), datagrams_max);
    }

    /// The session of a flow that is this lane's; `bytes` is its first datagram.
    fn begin_session(
        &mut self,
        event_loop: &mut EventLoop,
        received: &Received<'_>,
        (gate, bytes): (Arc<OwnedFd>, &[u8]),
        datagrams_max: u64,
    ) {
        let Received {
            plan,
            listen,
            key,
            source,
            ..
        } = *received;
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
                let sockets = event_loop.numbered_sockets(self.owner);
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
