//! Servers that are addresses of `stream` in this process: what a session opens to one is made
//! known, so that a loop is seen as soon as it closes.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use turnpike_stream::own_connections::Destination;
use turnpike_stream::phase::Status;
use turnpike_stream::session::Session;
use turnpike_upstream::{Address, Picked};

/// What there is to do for a server, which may be an address of ours.
pub(super) struct OwnAddress {
    /// Where it is one of TCP or UDP.
    inet: Option<SocketAddr>,
    /// The name that a unix socket has to be given; empty: none.
    pub(super) unix_name: Vec<u8>,
}

impl OwnAddress {
    /// Looks at a server that a session is about to be passed to. The error is how the session
    /// ends, where it has come around.
    pub(super) fn of(session: &mut Session, picked: &Picked) -> Result<Self, Status> {
        let mut own = Self {
            inet: None,
            unix_name: Vec::new(),
        };
        match picked.address() {
            Address::Inet(address) => {
                let is_own = session.may_pass_to(Destination::Inet(*address))?;
                own.inet = is_own.then_some(*address);
            }
            Address::Unix(path) => {
                if session.may_pass_to(Destination::Unix(path))? {
                    own.unix_name = session.name_own_connection();
                }
            }
        }
        Ok(own)
    }

    /// A socket to the server was opened, or is being connected.
    pub(super) fn opened(&self, session: &mut Session, socket: BorrowedFd<'_>) {
        if let Some(address) = self.inet {
            session.add_own_connection(socket, address);
        }
    }
}
