//! nginx's control API (`-l`): a few requests of HTTP to the master, in the shape of nginx's public
//! OpenAPI description, for programs that drive nginx by it.
//!
//! ```text
//!  GET   /1/nginx               version and build
//!  GET   /1/control/processes   serving processes
//!  GET   /1/control/config      the files of the configuration in force
//!  PATCH /1/control/config      a reload, with what was logged about it
//! ```
//!
//! One request is one connection. No client can hold the master up: nothing waits, and clients,
//! heads and times have limits. A unix socket admits its owner and root; to a port any local user
//! and any `proxy_pass` to the loopback address come, so it only shows things.

mod address;
mod request;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, absolute};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_lane::sys::descriptor;
use turnpike_lane::sys::epoll::{Epoll, Event, Interest};
use turnpike_lane::sys::socket::{self, Family, Kind, PeerAddress};
use turnpike_lane::sys::socket_option;
use turnpike_plan::product::Product;

use super::clients::{self, BACKLOG, Clients};
use super::connection::Connection;
use super::socket::{PrivateSocket, TOKEN_END, Ticket};
pub use address::ApiAddress;
use request::Reader;
pub(crate) use request::{ApiCall, Status};

/// How long a client may take for its request, and then for the answer: a few hundred bytes on this
/// machine. A reload in hand is not counted.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(30);
/// The number of the listening socket in the event queue; its clients count up from here.
const TOKEN_BASE: u64 = TOKEN_END;

/// The listening socket, while there is one, and its clients.
#[derive(Default, Debug)]
pub(crate) struct ApiSocket {
    place: Option<Place>,
    clients: Clients<Client>,
}

/// Where it listens.
#[derive(Debug)]
enum Place {
    File(PrivateSocket),
    Port(OwnedFd),
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Reading(Box<Reader>),
    /// The master has it in hand.
    Asked,
    /// Everything is said. The rest of what the client sends is read until it ends, since closing
    /// before that may take the answer from it.
    Answered {
        until: Instant,
    },
}

impl Place {
    fn listener(&self) -> BorrowedFd<'_> {
        match self {
            Place::File(socket) => socket.listener(),
            Place::Port(socket) => socket.as_fd(),
        }
    }

    fn open(address: &ApiAddress) -> io::Result<Place> {
        let address = match address {
            ApiAddress::Unix(path) => return PrivateSocket::open(path, BACKLOG).map(Place::File),
            ApiAddress::Port(address) => *address,
        };
        let family = if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        let listener = socket::open(family, Kind::Stream)?;
        socket_option::set_reuse_address(listener.as_fd(), true)?;
        socket::bind(listener.as_fd(), address)?;
        socket::listen(listener.as_fd(), BACKLOG)?;
        Ok(Place::Port(listener))
    }

    /// The socket of the master before this one, if it is at the same address.
    fn inherit(address: &ApiAddress, listener: OwnedFd) -> io::Result<Option<Place>> {
        descriptor::set_non_blocking(listener.as_fd(), true)?;
        match address {
            ApiAddress::Unix(path) if is_at_path(listener.as_fd(), path)? => {
                PrivateSocket::adopt(path, listener).map(|socket| Some(Place::File(socket)))
            }
            ApiAddress::Port(address) if is_at_port(listener.as_fd(), *address)? => {
                Ok(Some(Place::Port(listener)))
            }
            _ => Ok(None),
        }
    }
}

fn is_at_path(listener: BorrowedFd<'_>, path: &Path) -> io::Result<bool> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut buffer = [0; 108];
    let length = socket::local_unix_path(listener, &mut buffer)?;
    let own = Path::new(std::ffi::OsStr::from_bytes(&buffer[..length]));
    // nginx's may be one from its working directory, which is ours.
    Ok(length > 0 && absolute(own)? == path)
}

fn is_at_port(listener: BorrowedFd<'_>, address: SocketAddr) -> io::Result<bool> {
    Ok(socket::local_address(listener)? == PeerAddress::Inet(address))
}

impl ApiSocket {
    /// Listens at an address, with the socket of the master before this one where that is its.
    ///
    /// # Errors
    /// Those of the calls; `AddrInUse` where somebody else listens.
    pub(crate) fn listen(
        &mut self,
        address: &ApiAddress,
        inherited: Option<OwnedFd>,
        epoll: &Epoll,
    ) -> io::Result<()> {
        let inherited = match inherited {
            Some(listener) => Place::inherit(address, listener)?,
            None => None,
        };
        let place = match inherited {
            Some(place) => place,
            None => Place::open(address)?,
        };
        epoll.add(place.listener(), Interest::READ, TOKEN_BASE)?;
        self.place = Some(place);
        Ok(())
    }

    /// A copy of the listening socket, for another master.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(crate) fn copy(&self) -> io::Result<Option<OwnedFd>> {
        let place = self.place.as_ref();
        place
            .map(|place| place.listener().try_clone_to_owned())
            .transpose()
    }

    /// Accepts no more: another master has the same socket, and answers.
    pub(crate) fn pause(&self, epoll: &Epoll) {
        if let Some(place) = &self.place {
            // It fails only where it is not watched, which is what is wanted.
            let _ = epoll.delete(place.listener());
        }
    }

    /// Accepts again.
    pub(crate) fn resume(&self, epoll: &Epoll) {
        if let Some(place) = &self.place {
            // It fails only where it is watched already, which is what is wanted.
            let _ = epoll.add(place.listener(), Interest::READ, TOKEN_BASE);
        }
    }

    /// Listens no more; the socket's file, where it has one, is the caller's to remove.
    pub(crate) fn leave(&mut self, epoll: &Epoll) -> Option<PrivateSocket> {
        self.pause(epoll);
        match self.place.take()? {
            Place::File(socket) => Some(socket),
            Place::Port(_) => None,
        }
    }

    /// Whether an event's token, or a ticket's client, is one of ours.
    pub(crate) fn is_ours(token: u64) -> bool {
        token >= TOKEN_BASE
    }

    /// Takes an event up; gives the request that has come with it.
    pub(crate) fn take(
        &mut self,
        event: Event,
        epoll: &Epoll,
        product: Product,
    ) -> Option<(Ticket, ApiCall)> {
        let token = event.token;
        if token == TOKEN_BASE {
            if let Some(place) = &self.place {
                self.clients.accept(place.listener(), TOKEN_BASE, epoll);
            }
            return None;
        }
        let is_port = matches!(self.place, Some(Place::Port(_)));
        let client = self.clients.get_mut(token)?;
        client.connection.write();
        let lives = client.connection.read() && !event.is_hang_up();
        let connection = &mut client.connection;
        let wish = match &mut client.stage {
            Stage::Reading(reader) => reader.read(&connection.input, is_port),
            Stage::Asked | Stage::Answered { .. } => {
                connection.input.clear();
                None
            }
        };
        let asked = match wish.filter(|_| lives) {
            Some(Ok(wish)) => {
                client.stage = Stage::Asked;
                let id = Value::Null;
                Some((Ticket { client: token, id }, wish))
            }
            Some(Err(status)) => {
                client.answer(status, None, product);
                None
            }
            None => None,
        };
        self.settle(token, lives, epoll);
        asked
    }

    /// Sends an answer. A client that is gone needs none.
    pub(crate) fn answer(
        &mut self,
        ticket: &Ticket,
        status: Status,
        body: Option<&Value>,
        product: Product,
        epoll: &Epoll,
    ) {
        if let Some(client) = self.clients.get_mut(ticket.client) {
            client.answer(status, body, product);
            self.settle(ticket.client, true, epoll);
        }
    }

    /// When the next client's time is over.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.clients.next_deadline()
    }

    /// Closes clients whose time is over.
    pub(crate) fn close_late(&mut self, now: Instant) {
        self.clients.close_late(now);
    }

    /// Watches for what the client waits for now, or lets it go.
    fn settle(&mut self, token: u64, lives: bool, epoll: &Epoll) {
        let Some(client) = self.clients.get_mut(token) else {
            return;
        };
        let connection = &mut client.connection;
        let is_sent = connection.unsent_bytes() == 0;
        let is_done = match client.stage {
            Stage::Reading(_) => connection.has_ended,
            Stage::Asked => false,
            Stage::Answered { .. } => connection.has_ended && is_sent,
        };
        if !lives || is_done {
            self.clients.remove(token);
            return;
        }
        if is_sent && matches!(client.stage, Stage::Answered { .. }) {
            connection.end();
        }
        connection.watch(token, epoll);
    }
}

impl clients::Client for Client {
    fn new(connection: Connection) -> Client {
        let stage = Stage::Reading(Box::default());
        Client { connection, stage }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Reading(reader) => Some(reader.begun() + CLIENT_TIME_MAX),
            Stage::Asked => None,
            Stage::Answered { until } => Some(*until),
        }
    }
}

impl Client {
    fn answer(&mut self, status: Status, body: Option<&Value>, product: Product) {
        self.stage = Stage::Answered {
            until: Instant::now() + CLIENT_TIME_MAX,
        };
        self.connection.input.clear();
        self.connection.say(&status.response(body, product));
    }
}
