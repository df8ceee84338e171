//! The flows of UDP that one lane has.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::Owner;
use turnpike_lane::flows::{self, Arrival, ForwardedDatagram, LaneFlows};
use turnpike_lane::gate::ListenAddress;

use crate::flow::{Flow, FlowKey, Given, Origin};

/// The flows of a lane that take more datagrams. As many as sessions at most, which
/// `worker_connections` limits.
pub(crate) struct FlowTable {
    flows: RefCell<HashMap<FlowKey, Rc<Flow>>>,
    /// As the other lanes know them.
    lane: Rc<LaneFlows>,
    owner: Owner,
}

/// A flow whose session is under way. The table knows it no more when this is dropped.
pub(crate) struct Registered {
    pub(crate) flow: Rc<Flow>,
    address: ListenAddress,
    table: Rc<FlowTable>,
}

impl FlowTable {
    /// An empty table of the protocol with that number.
    pub(crate) fn new(lane: Rc<LaneFlows>, owner: Owner) -> Self {
        Self {
            flows: RefCell::default(),
            lane,
            owner,
        }
    }

    /// The flow with that key, and how many of so many datagrams are its; they count as given.
    pub(crate) fn takes(&self, key: FlowKey, datagrams: usize) -> Option<(Rc<Flow>, usize)> {
        let flow = Rc::clone(self.flows.borrow().get(&key)?);
        let (taken, given) = flow.count(datagrams);
        if given == Given::Last {
            self.forget(key);
        }
        Some((flow, taken))
    }

    /// The key as the lane's directory of flows knows it.
    pub(crate) fn in_directory(&self, key: FlowKey) -> flows::FlowKey {
        key.in_directory(self.owner)
    }

    /// Gives a datagram that came by this gate to who else has its flow; `false`: it is this lane's
    /// from now on.
    pub(crate) fn forward(
        &self,
        key: FlowKey,
        gate: &Arc<OwnedFd>,
        datagram: impl Fn() -> ForwardedDatagram,
    ) -> bool {
        self.lane.forward(self.in_directory(key), gate, datagram)
    }

    /// Gives up a claim: no session begins.
    pub(crate) fn release(&self, key: FlowKey) {
        self.lane.release(self.in_directory(key));
    }

    /// Adds a flow whose session begins, which is given `datagrams_max` in all.
    pub(crate) fn add(
        self: &Rc<Self>,
        address: ListenAddress,
        origin: Origin,
        datagrams_max: u64,
    ) -> Registered {
        let key = origin.key;
        let (flow, given) = Flow::new(origin, datagrams_max);
        let flow = Rc::new(flow);
        if given == Given::More {
            self.flows.borrow_mut().insert(key, Rc::clone(&flow));
        }
        Registered {
            flow,
            address,
            table: Rc::clone(self),
        }
    }

    fn forget(&self, key: FlowKey) {
        self.flows.borrow_mut().remove(&key);
        self.release(key);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let key = self.flow.origin.key;
        let is_known = self.table.flows.borrow().get(&key).map(Rc::as_ptr);
        if is_known == Some(Rc::as_ptr(&self.flow)) {
            self.table.forget(key);
        }
        while let Some(bytes) = self.flow.take() {
            let Origin { key, source, gate } = &self.flow.origin;
            self.table.lane.keep_unread(ForwardedDatagram {
                key: self.table.in_directory(*key),
                gate_address: self.address.clone(),
                peer: key.peer,
                local: key.local,
                source: *source,
                arrival: Arrival::Gate(Arc::clone(gate)),
                bytes,
            });
        }
    }
}
