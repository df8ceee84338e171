//! The flows of UDP that one lane has.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::gate::ListenAddress;

use crate::directory::{Elsewhere, FlowDirectory, Inbox, Stray, Way};
use crate::flow::{Flow, FlowKey, Given, Origin};

/// The flows of a lane that take more datagrams. As many as sessions at most, which
/// `worker_connections` limits.
pub(crate) struct FlowTable {
    flows: RefCell<HashMap<FlowKey, Rc<Flow>>>,
    /// What sessions that have ended left unread: it begins other ones.
    unread: RefCell<Vec<Stray>>,
    directory: Arc<FlowDirectory>,
    inbox: Arc<Inbox>,
}

/// A flow whose session is under way. The table knows it no more when this is dropped.
pub(crate) struct Registered {
    pub(crate) flow: Rc<Flow>,
    address: ListenAddress,
    table: Rc<FlowTable>,
}

impl FlowTable {
    /// An empty table; `wake` wakes its lane.
    pub(crate) fn new(
        directory: Arc<FlowDirectory>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            flows: RefCell::default(),
            unread: RefCell::default(),
            directory,
            inbox: Arc::new(Inbox::new(wake)),
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

    /// Gives a datagram that came by this gate to who else has its flow; `false`: it is this lane's
    /// from now on.
    pub(crate) fn leaves(
        &self,
        key: FlowKey,
        gate: &Arc<OwnedFd>,
        stray: impl Fn() -> Stray,
    ) -> bool {
        // A round takes the flow from a process that is there no more: there are two at most.
        while let Some(owner) = self.directory.claim(key, &self.inbox, gate) {
            if owner.put(stray()) {
                return true;
            }
            if let Elsewhere::Process(link) = owner {
                self.directory.forget(key, &link);
            }
        }
        false
    }

    /// Gives up a claim: no session begins.
    pub(crate) fn release(&self, key: FlowKey) {
        self.directory.release(key, &self.inbox);
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

    /// Whether there may be such datagrams as [`FlowTable::take_strays`] takes.
    pub(crate) fn has_strays(&self) -> bool {
        self.inbox.is_filled() || !self.unread.borrow().is_empty()
    }

    /// Takes datagrams that are to find or begin a flow here: those that other lanes were given,
    /// and those that sessions left unread.
    pub(crate) fn take_strays(&self) -> impl Iterator<Item = Stray> + use<> {
        let unread = std::mem::take(&mut *self.unread.borrow_mut());
        self.inbox.take().into_iter().chain(unread)
    }

    /// Takes nothing from other lanes any more.
    pub(crate) fn close(&self) {
        self.inbox.close();
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
            self.table.unread.borrow_mut().push(Stray {
                address: self.address.clone(),
                key,
                source: self.flow.origin.source,
                way: Way::Gate(Arc::clone(&self.flow.origin.gate)),
                bytes,
            });
        }
    }
}
