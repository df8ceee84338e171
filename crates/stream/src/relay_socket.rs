//! A socket of a session that is served in steps, with what is known of its readiness. It gives its
//! descriptor to nobody.

use std::io;
use std::mem;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use turnpike_lane::sys::epoll::{Event, Interest};
use turnpike_lane::sys::pipe::Pipe;
use turnpike_lane::sys::simulation::{self, Fault};
use turnpike_lane::sys::socket::{self, Closed, More, PeerAddress};
use turnpike_lane::sys::socket_option;
use turnpike_lane::transport::Transport;

use crate::watch::{SocketOf, Watch};

/// A write of so many bytes or fewer fits one segment on any path. The first one leaves at once
/// even where the kernel collects small ones (`TCP_NODELAY` is not set), as nothing is on its way.
const SEGMENT_BYTES: usize = 512;

/// One end of a relay without TLS.
pub struct RelaySocket {
    descriptor: OwnedFd,
    of: SocketOf,
    /// There may be input.
    is_readable: bool,
    /// The peer will send no more: input is read to its end.
    is_ending: bool,
    watched: Watched,
    has_sent: bool,
    /// `TCP_NODELAY` is wanted, and not set yet.
    wants_no_delay: bool,
}

/// What a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Nothing,
    Input,
    InputAndSpace,
}

impl RelaySocket {
    /// The client of a session, which nobody watches yet.
    pub(crate) fn client(descriptor: OwnedFd) -> Self {
        Self {
            descriptor,
            of: SocketOf::Client,
            is_readable: true,
            is_ending: false,
            watched: Watched::Nothing,
            has_sent: false,
            wants_no_delay: false,
        }
    }

    /// A server that is being connected to.
    pub fn server(descriptor: OwnedFd) -> Self {
        Self {
            descriptor,
            of: SocketOf::Server,
            is_readable: false,
            is_ending: false,
            watched: Watched::Nothing,
            has_sent: false,
            wants_no_delay: true,
        }
    }

    /// The transport of a socket that nobody watches yet, for a future.
    pub(crate) fn into_transport(self) -> Transport {
        Transport::plain(self.descriptor)
    }

    /// Sends small pieces at once, or not.
    pub fn set_no_delay(&mut self, wanted: bool) {
        self.wants_no_delay = wanted;
    }

    /// Takes note of an event.
    pub fn note(&mut self, event: Event) {
        self.is_readable |= event.is_readable();
        self.is_ending |= event.is_peer_closed();
    }

    /// Whether there may be input.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// Watches it for input.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn watch_input(&mut self, watch: &Watch<'_>) -> io::Result<()> {
        match self.watched {
            Watched::Nothing => self.set_watched(watch, Watched::Input),
            Watched::Input | Watched::InputAndSpace => Ok(()),
        }
    }

    /// Watches it for space as well.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn watch_space(&mut self, watch: &Watch<'_>) -> io::Result<()> {
        match self.watched {
            Watched::Nothing | Watched::Input => self.set_watched(watch, Watched::InputAndSpace),
            Watched::InputAndSpace => Ok(()),
        }
    }

    /// Has its state told again.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn watch_again(&mut self, watch: &Watch<'_>) -> io::Result<()> {
        match self.watched {
            Watched::Nothing => self.watch_input(watch),
            watched => self.set_watched(watch, watched),
        }
    }

    fn set_watched(&mut self, watch: &Watch<'_>, wanted: Watched) -> io::Result<()> {
        let always = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
        let interest = match wanted {
            Watched::Nothing | Watched::Input => always,
            Watched::InputAndSpace => always | Interest::WRITE,
        };
        let socket = self.descriptor.as_fd();
        match self.watched {
            Watched::Nothing => watch.add(self.of, socket, interest)?,
            Watched::Input | Watched::InputAndSpace => watch.modify(self.of, socket, interest)?,
        }
        self.watched = wanted;
        Ok(())
    }

    /// Whether connecting has gone wrong: a send of nothing says so.
    ///
    /// # Errors
    /// The error of connecting.
    pub fn check(&self) -> io::Result<()> {
        socket::send(self.descriptor.as_fd(), &[], More::No).map(|_| ())
    }

    /// Our own address of the connection.
    ///
    /// # Errors
    /// The error of getsockname(2).
    pub fn local_address(&self) -> io::Result<PeerAddress> {
        socket::local_address(self.descriptor.as_fd())
    }

    /// Reads up to `bytes_max` after the content of `buffer`. 0 is the end.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if there is no input.
    pub fn receive(&mut self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let received = socket::receive_append(self.descriptor.as_fd(), buffer, bytes_max);
        match &received {
            Ok(0) => {}
            // Later input raises a new event; the end of the stream was told already.
            Ok(count) => self.is_readable = *count == bytes_max || self.is_ending,
            Err(error) => self.note_error(error),
        }
        received
    }

    /// Reads what has come before anybody watches it: as [`RelaySocket::receive`], but `None` is
    /// that nothing has come yet. There may be input afterwards in any case.
    ///
    /// # Errors
    /// The socket's error.
    pub fn receive_early(
        &mut self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> io::Result<Option<usize>> {
        match self.receive(buffer, bytes_max) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_readable = true;
                Ok(None)
            }
            received => received.map(Some),
        }
    }

    /// What the other end has closed; an error counts as everything.
    pub fn closed_by_peer(&self) -> Closed {
        socket::closed_by_peer(self.descriptor.as_fd()).unwrap_or(Closed::Everything)
    }

    /// Moves up to `bytes_max` into a pipe, which is empty. 0 is the end.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if there is no input.
    pub fn fill(&mut self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize> {
        let filled = pipe.fill(self.descriptor.as_fd(), bytes_max);
        if let Err(error) = &filled {
            self.note_error(error);
        }
        filled
    }

    fn note_error(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::WouldBlock {
            self.is_readable = false;
        }
    }

    /// Sends as much as it takes; 0: nothing.
    ///
    /// # Errors
    /// The socket's error.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.before_send(bytes.len());
        taken(socket::send(self.descriptor.as_fd(), bytes, More::No))
    }

    /// Sends as much of a pipe's bytes as it takes; 0: nothing.
    ///
    /// # Errors
    /// The socket's error.
    pub fn drain(&mut self, pipe: &Pipe, bytes: usize) -> io::Result<usize> {
        self.before_send(bytes);
        taken(pipe.drain(self.descriptor.as_fd(), bytes))
    }

    /// A unix socket has no such option.
    fn before_send(&mut self, bytes: usize) {
        let may_wait = self.has_sent || bytes > SEGMENT_BYTES;
        self.has_sent = true;
        if may_wait && mem::take(&mut self.wants_no_delay) {
            let _ = socket_option::set_no_delay(self.descriptor.as_fd(), true);
        }
    }

    /// Ends our side; the peer may still send.
    ///
    /// # Errors
    /// The error of shutdown(2).
    pub fn shutdown_write(&self) -> io::Result<()> {
        if simulation::is_faulty(Fault::EndNotRelayed) {
            return Ok(());
        }
        socket::shutdown(self.descriptor.as_fd(), Shutdown::Write)
    }
}

/// What a socket took, 0 where it is full.
fn taken(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
