//! The master's end: a listening socket and its clients. No client can hold the master up.
//!
//! Everything is non-blocking, and everything has a limit: clients, lines, requests in hand, bytes
//! of answers that nobody reads, and time. The file's mode 0600 admits only the master's own
//! user and root.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::Value;
use turnpike_lane::sys::epoll::{Epoll, Event, Interest};
use turnpike_lane::sys::socket::{self, Family, Kind};

use super::api::ApiSocket;
use super::clients::{self, BACKLOG, Clients};
use super::connection::Connection;
use super::{LINE_BYTES_MAX, Request, RequestError, answer_line};

/// Only the owner may connect.
const MODE: u32 = 0o600;
/// Requests that a client may have in hand; more are refused.
const REQUESTS_PER_CLIENT_MAX: usize = 16;
/// Bytes of answers kept for a client who does not read: the largest answer several times over.
const OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long a client may be silent with nothing in hand, or not read: a forgotten connection
/// must not keep a place for ever.
const IDLE_MAX: Duration = Duration::from_secs(300);
/// Where tokens of the event queue begin that are ours; the master's others count up from 0.
const TOKEN_BASE: u64 = 1 << 48;
/// Where they end: those of the API begin there.
pub(super) const TOKEN_END: u64 = 1 << 56;

/// The client that asked, and the name under which the answer goes back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticket {
    pub(super) client: u64,
    pub(super) id: Value,
}

impl Ticket {
    /// Whether the client is one of the control API's.
    pub(crate) fn is_of_api(&self) -> bool {
        ApiSocket::is_ours(self.client)
    }
}

/// The socket, while there is one, and its clients, who may outlive its place.
#[derive(Default, Debug)]
pub(crate) struct ControlSocket {
    place: Option<PrivateSocket>,
    clients: Clients<Client>,
}

/// A listening unix socket that only its owner and root may connect to.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    path: PathBuf,
    listener: OwnedFd,
    /// The device and inode of its file: another master's may stand there later.
    file: (u64, u64),
}

impl PrivateSocket {
    /// Listens at `path`. A socket file at which nobody listens any more is replaced.
    ///
    /// # Errors
    /// `AddrInUse` where somebody listens, `AlreadyExists` where the file is no socket; those of
    /// the calls.
    pub(crate) fn open(path: &Path, backlog: i32) -> io::Result<PrivateSocket> {
        remove_stale(path)?;
        let file = File::from(socket::open(Family::Unix, Kind::Stream)?);
        // The file that bind makes takes the socket's mode: there is no moment at which it has
        // another.
        file.set_permissions(Permissions::from_mode(MODE))?;
        let listener = OwnedFd::from(file);
        socket::bind_unix(listener.as_fd(), path.as_os_str().as_bytes())?;
        socket::listen(listener.as_fd(), backlog)?;
        PrivateSocket::adopt(path, listener)
    }

    /// One that listens at `path` already.
    ///
    /// # Errors
    /// Those of `stat(2)`.
    pub(crate) fn adopt(path: &Path, listener: OwnedFd) -> io::Result<PrivateSocket> {
        Ok(PrivateSocket {
            path: path.to_path_buf(),
            listener,
            file: file_id(path)?,
        })
    }

    /// The socket.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its file is where it was put.
    pub(crate) fn is_in_place(&self) -> bool {
        file_id(&self.path).is_ok_and(|file| file == self.file)
    }

    /// Moves its file, for another master to take the place, or back.
    ///
    /// # Errors
    /// Those of `rename(2)`.
    pub(crate) fn rename(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.path = path.to_path_buf();
        Ok(())
    }

    /// Removes its file, where it is still its own.
    ///
    /// # Errors
    /// Those of `unlink(2)`.
    pub(crate) fn remove(&self) -> io::Result<()> {
        if self.is_in_place() {
            fs::remove_file(&self.path)
        } else {
            Ok(())
        }
    }
}

fn file_id(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[derive(Debug)]
struct Client {
    // Closed when the client has ended and everything is answered.
    connection: Connection,
    in_hand: usize,
}

impl ControlSocket {
    /// Listens at `path`, and no more where it did before: that is given back. A socket file at
    /// which nobody listens any more is replaced.
    ///
    /// # Errors
    /// See [`PrivateSocket::open`]. Then nothing has changed.
    pub(crate) fn listen(
        &mut self,
        path: &Path,
        epoll: &Epoll,
    ) -> io::Result<Option<PrivateSocket>> {
        let place = PrivateSocket::open(path, BACKLOG)?;
        epoll.add(place.listener(), Interest::READ, TOKEN_BASE)?;
        let old = self.leave(epoll);
        self.place = Some(place);
        Ok(old)
    }

    /// Listens no more.
    pub(crate) fn leave(&mut self, epoll: &Epoll) -> Option<PrivateSocket> {
        let old = self.place.take()?;
        // It was added when it was opened.
        let _ = epoll.delete(old.listener());
        Some(old)
    }

    /// Whether an event's token is one of ours.
    pub(crate) fn is_ours(token: u64) -> bool {
        (TOKEN_BASE..TOKEN_END).contains(&token)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(PrivateSocket::path)
    }

    /// The socket, while there is one.
    pub(crate) fn place(&mut self) -> Option<&mut PrivateSocket> {
        self.place.as_mut()
    }

    /// Takes an event up; gives the requests that have come with it.
    pub(crate) fn take(&mut self, event: Event, epoll: &Epoll) -> Vec<(Ticket, Request)> {
        let token = event.token;
        if token == TOKEN_BASE {
            if let Some(place) = &self.place {
                self.clients.accept(place.listener(), TOKEN_BASE, epoll);
            }
            return Vec::new();
        }
        let Some(client) = self.clients.get_mut(token) else {
            return Vec::new();
        };
        client.connection.write();
        let mut requests = Vec::new();
        let reads = client.connection.read() && client.requests(token, &mut requests);
        // Who has hung up gets no answer, and would be reported again and again.
        self.settle(token, reads && !event.is_hang_up(), epoll);
        requests
    }

    /// Sends an answer. A client that is gone needs none.
    pub(crate) fn answer(
        &mut self,
        ticket: &Ticket,
        outcome: &Result<Value, RequestError>,
        epoll: &Epoll,
    ) {
        let Some(client) = self.clients.get_mut(ticket.client) else {
            return;
        };
        client.in_hand = client.in_hand.saturating_sub(1);
        client.say(&ticket.id, outcome);
        self.settle(ticket.client, true, epoll);
    }

    /// Sends what can be sent before the end.
    pub(crate) fn last_words(&mut self) {
        for client in self.clients.all_mut() {
            client.connection.write();
        }
    }

    /// When the next client's time is over.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.clients.next_deadline()
    }

    /// Closes clients whose time is over.
    pub(crate) fn close_idle(&mut self, now: Instant) {
        self.clients.close_late(now);
    }

    /// Watches for what the client waits for now, or lets it go.
    fn settle(&mut self, token: u64, lives: bool, epoll: &Epoll) {
        let Some(client) = self.clients.get_mut(token) else {
            return;
        };
        let connection = &mut client.connection;
        let unsent_bytes = connection.unsent_bytes();
        let is_done = connection.has_ended && client.in_hand == 0 && unsent_bytes == 0;
        let is_deaf = unsent_bytes > OUTPUT_BYTES_MAX;
        if !lives || is_done || is_deaf {
            self.clients.remove(token);
            return;
        }
        connection.watch(token, epoll);
    }
}

impl clients::Client for Client {
    fn new(connection: Connection) -> Client {
        Client {
            connection,
            in_hand: 0,
        }
    }

    /// One with a request in hand waits for us.
    fn deadline(&self) -> Option<Instant> {
        let waits = self.in_hand > 0 && self.connection.unsent_bytes() == 0;
        (!waits).then(|| self.connection.deadline(IDLE_MAX))
    }
}

impl Client {
    /// Takes whole lines from the input; `false` when a line is too long.
    fn requests(&mut self, token: u64, requests: &mut Vec<(Ticket, Request)>) -> bool {
        let mut start = 0;
        let mut input = std::mem::take(&mut self.connection.input);
        while let Some(length) = input[start..].iter().position(|byte| *byte == b'\n') {
            let line = &input[start..start + length];
            start += length + 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            if line.len() > LINE_BYTES_MAX {
                return false;
            }
            match Request::parse(line) {
                Ok(request) if self.in_hand >= REQUESTS_PER_CLIENT_MAX => {
                    let busy = RequestError::new("busy", "too many requests in hand");
                    self.say(&request.id, &Err(busy));
                }
                Ok(request) => {
                    self.in_hand += 1;
                    let id = request.id.clone();
                    requests.push((Ticket { client: token, id }, request));
                }
                Err((id, failure)) => self.say(&id, &Err(failure)),
            }
        }
        input.drain(..start);
        let is_too_long = input.len() > LINE_BYTES_MAX;
        self.connection.input = input;
        if is_too_long {
            self.say(
                &Value::Null,
                &Err(RequestError::invalid("the line is too long")),
            );
            return false;
        }
        true
    }

    fn say(&mut self, id: &Value, outcome: &Result<Value, RequestError>) {
        self.connection.say(answer_line(id, outcome).as_bytes());
    }
}

/// Removes a socket file that a dead master has left.
fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    let probe = socket::open(Family::Unix, Kind::Stream)?;
    match socket::connect_unix(probe.as_fd(), path.as_os_str().as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // Somebody listens; `WouldBlock` says that others wait already.
        Ok(()) | Err(_) => return Err(io::ErrorKind::AddrInUse.into()),
    }
    // Another start at the same moment may have replaced it since.
    match fs::symlink_metadata(path) {
        Ok(now) if now.ino() == metadata.ino() => fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}
