//! Datagrams on their way from a gate to the sessions of their flows.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::sys::datagram::{DATAGRAMS_MAX, Datagram};
use turnpike_lane::sys::socket::PeerAddress;

use crate::client::Client;
use crate::directory::Stray;
use crate::flow::{FlowKey, Origin};
use crate::lane::LanePlan;
use crate::session::Session;
use crate::sessions::Sessions;

/// Calls that empty a gate in a turn: a flood is not to keep everything else on the lane waiting.
const CALLS_PER_TURN_MAX: usize = 8;

/// A datagram with what is known of its way here.
struct Arrival<'a> {
    plan: &'a Rc<LanePlan>,
    listen: usize,
    origin: Origin,
    bytes: &'a [u8],
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
        let mut batch = lane.batch();
        for _ in 0..CALLS_PER_TURN_MAX {
            let Ok(count) = batch.receive(gate.as_fd(), DATAGRAMS_MAX) else {
                return;
            };
            // What came to an address that is gone is read, and lost.
            for (plan, datagram) in plan.iter().cycle().zip(batch.datagrams()) {
                if let Some(origin) = origin_of(&plan.listens[listen].address, gate, &datagram) {
                    let bytes = datagram.bytes;
                    self.arrived(
                        event_loop,
                        Arrival {
                            plan,
                            listen,
                            origin,
                            bytes,
                        },
                        &mut room,
                    );
                }
            }
            if count < DATAGRAMS_MAX {
                return;
            }
        }
    }

    /// Takes over datagrams of this lane's flows that came to other lanes, and those that sessions
    /// left unread. `room`: as above.
    pub fn take_strays(&mut self, event_loop: &mut EventLoop, mut room: usize) {
        for stray in self.flows.take_strays() {
            let Stray {
                address,
                origin,
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
                    origin,
                    bytes: &bytes,
                };
                self.arrived(event_loop, arrival, &mut room);
            }
        }
    }

    fn arrived(&mut self, event_loop: &mut EventLoop, arrival: Arrival<'_>, room: &mut usize) {
        let Arrival {
            plan,
            listen,
            origin,
            bytes,
        } = arrival;
        let key = origin.key;
        if self.flows.give(key, bytes) {
            return;
        }
        let server = &plan.servers[plan.listens[listen].default_server];
        let address = plan.listens[listen].address.clone();
        let datagrams_max = server
            .content
            .as_ref()
            .map_or(1, |content| content.datagrams_max());
        if datagrams_max != 1
            && let Some(owner) = self.flows.claim(key)
        {
            owner.put(Stray {
                address,
                origin,
                bytes: bytes.to_vec(),
            });
            return;
        }
        let Some(left) = room.checked_sub(1) else {
            self.flows.release(key);
            if !std::mem::replace(&mut self.is_full, true) {
                let message = format_args!("worker_connections are not enough");
                server.error_log.event(Level::Alert, message);
            }
            return;
        };
        *room = left;
        let ends = [key.peer, key.local].map(PeerAddress::Inet);
        let mut session = Session::new(self.lane.clone(), plan.clone(), listen, ends);
        session.bytes_received.set(bytes.len() as u64);
        session.preread = bytes.to_vec();
        let registered = self.flows.add(address, origin, datagrams_max);
        let client = Client::Flow(Rc::clone(&registered.flow));
        self.begin(event_loop, session, client, Some(registered));
    }
}

/// Whence a datagram came, and to which address of ours.
fn origin_of(
    address: &ListenAddress,
    gate: &Arc<OwnedFd>,
    datagram: &Datagram<'_>,
) -> Option<Origin> {
    let (ListenAddress::Udp(own), PeerAddress::Inet(peer)) = (address, datagram.peer) else {
        return None;
    };
    let source = datagram.local.filter(|_| own.ip().is_unspecified());
    let mut local = *own;
    if let Some(source) = source {
        local.set_ip(source);
    }
    Some(Origin {
        key: FlowKey { local, peer },
        gate: Arc::clone(gate),
        source,
    })
}
