//! Flows of datagrams: which lane, or which process, has each, and how its datagrams get there.
//!
//! A datagram may come by the gate of another lane than that of its flow, when the number of lanes
//! has changed, when a lane is rescued, or when the kernel's choice among gates has; and by that of
//! another process while the serving process changes. A flow is known by a key that only its
//! protocol can read: the addresses of both ends, or a connection ID.
//!
//! ```text
//!  datagram of a flow that the lane does not have ─► forward: the directory of the process
//!      nobody has it                   ─► it is this lane's from now on
//!      another lane has it             ─► the inbox of that lane
//!      the process before has it       ─► the link to that one (`succession`)
//! ```
//!
//! Nothing here knows what a datagram says.

pub mod connection_id;
mod directory;
mod succession;

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use directory::FlowDirectory;

use crate::event_loop::Owner;
use crate::gate::ListenAddress;
use crate::steering::QuicRules;
use crate::sys::simulation::{self, Fault};
use directory::{Elsewhere, Inbox};
use succession::FlowLink;

/// Bytes of a key: two addresses of IPv6 with their ports, flow labels and scopes; a connection ID
/// of QUIC has at most 20.
const KEY_BYTES_MAX: usize = 2 * (16 + 2 + 4 + 4);

const _: () = assert!(KEY_BYTES_MAX <= u8::MAX as usize);

/// The key of a flow: bytes that its protocol alone can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    owner: Owner,
    length: u8,
    /// Zero behind its length.
    bytes: [u8; KEY_BYTES_MAX],
}

/// A datagram on its way to the lane that has its flow.
pub struct ForwardedDatagram {
    /// The key of its flow.
    pub key: FlowKey,
    /// The address of the gate that it came by.
    pub gate_address: ListenAddress,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address of ours that it was sent to.
    pub local: SocketAddr,
    /// The same, where the gate is bound to all of them: answers have to come from it.
    pub source: Option<IpAddr>,
    pub arrival: Arrival,
    pub bytes: Vec<u8>,
}

/// How a datagram came to a lane.
#[derive(Clone)]
pub enum Arrival {
    /// By a gate.
    Gate(Arc<OwnedFd>),
    /// From the process that reads the gates, whose it is if its flow has ended here.
    Process(ProcessBehind),
    /// From the process that had its flow; another datagram has begun the flow anew.
    Returned,
}

/// The process after this one, which reads the gates.
#[derive(Clone)]
pub struct ProcessBehind(Arc<FlowLink>);

/// The flows of one lane, as the others know them.
pub struct LaneFlows {
    directory: Arc<FlowDirectory>,
    inbox: Arc<Inbox>,
    /// Datagrams that sessions left unread when they ended: they begin other ones.
    unread: RefCell<Vec<ForwardedDatagram>>,
}

impl FlowKey {
    /// A key of that protocol, written by `write` into so many bytes; it returns how many it took.
    pub fn write(owner: Owner, write: impl FnOnce(&mut [u8; KEY_BYTES_MAX]) -> usize) -> Self {
        let mut bytes = [0; KEY_BYTES_MAX];
        let length = write(&mut bytes).min(KEY_BYTES_MAX);
        Self {
            owner,
            length: length as u8,
            bytes,
        }
    }

    /// A key of that protocol; `None`: it is longer than any may be.
    fn read(owner: Owner, bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= KEY_BYTES_MAX).then(|| {
            Self::write(owner, |key| {
                key[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            })
        })
    }

    /// The protocol that the flow is of.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl ProcessBehind {
    /// Gives a datagram back whose flow has ended here.
    pub fn give_back(&self, datagram: &ForwardedDatagram) {
        self.0.give_back(datagram);
    }
}

impl LaneFlows {
    /// No flows; `wake` wakes the lane, from any thread.
    pub fn new(directory: Arc<FlowDirectory>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            directory,
            inbox: Arc::new(Inbox::new(wake)),
            unread: RefCell::default(),
        }
    }

    /// Gives a datagram that came by this gate to who else has its flow; `false`: the flow is this
    /// lane's from now on.
    pub fn forward(
        &self,
        key: FlowKey,
        gate: &Arc<OwnedFd>,
        datagram: impl Fn() -> ForwardedDatagram,
    ) -> bool {
        let is_lost = simulation::is_faulty(Fault::ForwardLost);
        // A round takes the flow from a lane or process that is there no more: there are two at
        // most.
        while let Some(owner) = self.directory.claim(key, &self.inbox, gate) {
            if is_lost || owner.put(datagram()).is_ok() {
                return true;
            }
            if let Elsewhere::Process(link) = owner {
                self.directory.forget(key, &link);
            }
        }
        false
    }

    /// Notes that a flow is this lane's; `false`: another has it. The gate is one that its
    /// datagrams come by.
    pub fn claim(&self, key: FlowKey, gate: &Arc<OwnedFd>) -> bool {
        self.directory.claim(key, &self.inbox, gate).is_none()
    }

    /// Has the steering program give datagrams of these connection IDs to the lanes that they name:
    /// this process reads the gates of QUIC.
    pub fn steer(&self, rules: QuicRules) {
        self.directory.steer(rules);
    }

    /// Whether another process is to read the gates.
    pub fn have_successor(&self) -> bool {
        self.directory.has_successor()
    }

    /// Gives up a flow of this lane.
    pub fn release(&self, key: FlowKey) {
        if simulation::is_faulty(Fault::FlowKept) {
            return;
        }
        self.directory.release(key, &self.inbox);
    }

    /// Keeps a datagram that a session of this lane has left unread, until
    /// [`LaneFlows::take_waiting`].
    pub fn keep_unread(&self, datagram: ForwardedDatagram) {
        self.unread.borrow_mut().push(datagram);
    }

    /// Whether there may be such datagrams as [`LaneFlows::take_waiting`] takes.
    pub fn has_waiting(&self) -> bool {
        self.inbox.is_filled() || !self.unread.borrow().is_empty()
    }

    /// Takes nothing from others any more, unless something of theirs waits: the lane has to take
    /// that first. Returns whether nothing can come.
    pub fn close_if_empty(&self) -> bool {
        self.unread.borrow().is_empty() && self.inbox.close_if_empty()
    }

    /// Takes datagrams that are to find or begin a flow here: those that other lanes were given,
    /// and those that sessions left unread.
    pub fn take_waiting(&self) -> impl Iterator<Item = ForwardedDatagram> + use<> {
        let unread = std::mem::take(&mut *self.unread.borrow_mut());
        self.inbox.take().into_iter().chain(unread)
    }
}

impl Drop for LaneFlows {
    /// The lane takes nothing from others any more.
    fn drop(&mut self) {
        self.inbox.close();
    }
}
