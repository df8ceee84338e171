//! Connections on their way from one protocol to another. Their sockets are seen only by whoever
//! serves them next.

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
