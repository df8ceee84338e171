//! Sessions that come back: one that other sessions of this process have passed on knows the
//! addresses that it has come through, and is refused where it has been before.
//!
//! A lane may accept a connection before the lane that opens it has made it known. So a session
//! looks twice: when it begins, and before it is passed to an address of ours itself.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::{self, Kind, PeerAddress};

use crate::own_connections::{Destination, Ends, Opened, inet};
use crate::phase::Status;
use crate::session::Session;

/// Addresses of ours that a session may come through before the one that it is at: as many as
/// `pass` passes a connection on.
const ADDRESSES_MAX: usize = 10;

impl Session {
    /// Finds the session that it comes from, if that is one of ours. `socket` is the client's,
    /// where it is a connection.
    pub(crate) fn find_origin(&mut self, socket: Option<&OwnedFd>) {
        let all = &self.lane.own_connections;
        if all.is_empty() {
            return;
        }
        let ends = match (self.connection_peer.unwrap_or(self.peer), self.local) {
            (PeerAddress::Inet(from), PeerAddress::Inet(to)) => inet(self.kind(), from, to),
            _ => {
                let mut name = [0; socket::UNIX_NAME_BYTES_MAX];
                let count = socket.map(|socket| socket::peer_unix_name(socket.as_fd(), &mut name));
                match count {
                    Some(Ok(count)) if count > 0 => Ends::Unix(name[..count].to_vec()),
                    _ => return,
                }
            }
        };
        if let Some(came_through) = all.find(&ends) {
            self.came_through = came_through;
        }
    }

    /// Refuses a session that has come around, or through too many addresses of ours. The error is
    /// how it ends.
    pub(crate) fn refuse_loop(&self) -> Result<(), Status> {
        let address = &self.listen().address;
        if self.came_through.contains(address) {
            let message = format_args!("proxy_pass loop: the session has come by {address} before");
            self.log(Level::Error, message);
            return Err(Status::InternalServerError);
        }
        if self.came_through.len() > ADDRESSES_MAX {
            let message = format_args!(
                "proxy_pass loop: the session has come through more than {ADDRESSES_MAX} addresses \
                 of this server"
            );
            self.log(Level::Error, message);
            return Err(Status::InternalServerError);
        }
        Ok(())
    }

    /// Whether a server that the session is about to be passed to is an address of ours: what is
    /// opened to it has to be added, see [`Session::add_own_connection`].
    ///
    /// # Errors
    /// How the session ends, where it has come around.
    pub fn may_pass_to(&mut self, destination: Destination<'_>) -> Result<bool, Status> {
        self.own_connection = None;
        if !self.plan.is_own(self.kind(), destination) {
            return Ok(false);
        }
        if self.came_through.is_empty() && self.passes == 0 {
            self.find_origin(None);
        }
        self.refuse_loop()?;
        Ok(true)
    }

    /// Adds a socket that was opened to one of our addresses.
    pub fn add_own_connection(&mut self, opened: BorrowedFd<'_>, to: SocketAddr) {
        if let Ok(PeerAddress::Inet(from)) = socket::local_address(opened) {
            self.add_ends(inet(self.kind(), from, to));
        }
    }

    /// Adds a unix socket that is going to be opened to one of our addresses; returns the name that
    /// it has to be given, by which its other end is found.
    pub fn name_own_connection(&mut self) -> Vec<u8> {
        // A number that no other process guesses by chance: names are unique on the machine.
        let name = format!("\0turnpike-{:016x}", self.lane.random()).into_bytes();
        self.add_ends(Ends::Unix(name.clone()));
        name
    }

    /// The addresses that the session has come through, with its own.
    pub(crate) fn route(&self) -> Vec<ListenAddress> {
        let own = self.listen().address.clone();
        self.came_through.iter().cloned().chain([own]).collect()
    }

    fn add_ends(&mut self, ends: Ends) {
        let opened = Opened {
            serial: self.serial,
            came_through: self.route(),
        };
        self.own_connection = Some(self.lane.own_connections.add(ends, opened));
    }

    fn kind(&self) -> Kind {
        self.listen().address.kind()
    }
}
