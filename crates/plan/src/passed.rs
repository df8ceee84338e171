//! Connections on their way from one protocol to another. Their sockets are seen only by whoever
//! serves them next.

use std::os::fd::OwnedFd;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::Transport;

use crate::proxy_header::ProxyHeader;
use crate::tls::TlsSession;

/// A connection that is passed to the server of another address (`pass`). It is closed where it is
/// dropped.
pub struct PassedConnection {
    address: ListenAddress,
    transport: Transport,
    facts: PassedFacts,
}

/// What is known of a connection that is passed on.
pub struct PassedFacts {
    /// What was read of it, and nobody has looked at.
    pub bytes: Vec<u8>,
    /// The client, as far as it is known.
    pub peer: PeerAddress,
    /// What its TLS session has agreed on, where it has one.
    pub tls: Option<Box<TlsSession>>,
    /// What its PROXY protocol header said, where it began with one.
    pub proxy_header: Option<ProxyHeader>,
    /// How often it was passed on.
    pub passes: u8,
    /// The addresses of ours that it has come through.
    pub came_through: Vec<ListenAddress>,
}

/// A connection that the event handler of one protocol was given, though its gate is another's. It
/// is closed where it is dropped.
pub struct AcceptedConnection {
    gate: PlanGate,
    socket: OwnedFd,
    peer: PeerAddress,
}

/// A gate by its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanGate {
    /// The plan's number.
    pub generation: u64,
    /// The gate's place among those of its protocol.
    pub place: usize,
}

/// The connections of one protocol on a lane, whose gates another protocol's handler accepts by.
pub trait Acceptor {
    /// Serves a connection that was accepted; closes it where the plan of its gate is gone.
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: PlanGate,
        socket: OwnedFd,
        peer: PeerAddress,
    );

    /// Says that a connection of this gate was refused, since the lane may hold no more than
    /// `connections_max`.
    fn refused(&mut self, gate: PlanGate, connections_max: usize);
}

impl AcceptedConnection {
    /// A connection that came by this gate.
    pub fn new(gate: PlanGate, socket: OwnedFd, peer: PeerAddress) -> Self {
        Self { gate, socket, peer }
    }

    /// Moves the connection to the protocol of its gate.
    pub fn move_to(self, acceptor: &mut impl Acceptor, event_loop: &mut EventLoop) {
        acceptor.accepted(event_loop, self.gate, self.socket, self.peer);
    }

    /// Closes the connection: the protocol of its gate says that the lane may hold no more than
    /// `connections_max`.
    pub fn refuse(self, acceptor: &mut impl Acceptor, connections_max: usize) {
        acceptor.refused(self.gate, connections_max);
    }
}

/// The connections of one protocol on a lane, to which others may be passed.
pub trait Receiver {
    /// The place of the address among those that the plan in force serves.
    fn place_of(&self, address: &ListenAddress) -> Option<usize>;

    /// Serves a connection that was passed to the address at that place.
    fn receive(
        &mut self,
        event_loop: &mut EventLoop,
        place: usize,
        transport: Transport,
        facts: PassedFacts,
    );
}

impl PassedConnection {
    /// A connection that is passed to an address.
    pub fn new(address: ListenAddress, transport: Transport, facts: PassedFacts) -> Self {
        Self {
            address,
            transport,
            facts,
        }
    }

    /// Moves the connection to a receiver that serves its address; gives it back where the address
    /// is not of the receiver's plan in force.
    pub fn move_to(
        self,
        receiver: &mut impl Receiver,
        event_loop: &mut EventLoop,
    ) -> Option<PassedConnection> {
        let Some(place) = receiver.place_of(&self.address) else {
            return Some(self);
        };
        receiver.receive(event_loop, place, self.transport, self.facts);
        None
    }
}
